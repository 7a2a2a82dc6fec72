# Determines the state and resource usage of a process and its descendants. The scripts around processes do this every
# few seconds, so the shell reads /proc itself and starts no commands. Needs common.sh before it.

# find_family PID: sets `family` to the process and its descendants, the process first; only to the process if the
# kernel does not list children (CONFIG_PROC_CHILDREN).
find_family() {
  family=$1 parents=$1
  while [ -n "$parents" ]; do
    found=
    for member in $parents; do
      for list in "/proc/$member"/task/*/children; do
        children=
        read -r children <"$list" # fails, since the file does not end with a newline
        [ -z "$children" ] || found="$found $children"
      done
    done
    family="$family$found" parents=$found
  done
} 2>/dev/null

# end_family PID: kills a child of this shell and everything it has started. All are stopped first, so that they cannot
# start anything more.
end_family() {
  seen= family=$1
  while [ "$family" != "$seen" ]; do
    seen=$family
    kill -STOP $family
    find_family "$1"
  done
  kill -KILL $family
} 2>/dev/null

# usage PID: sets `state` to the first of these that applies: the state of any stopped process; D if the first process
# waits for a disk; R if any runs; D if any waits for a disk; the state of the first. Sets `ticks` and `pages` to the CPU
# time and the resident memory of all of them.
usage() {
  find_family "$1"
  own= stopped= runs= waits= ticks=0 pages=0
  for member in $family; do
    stat=
    read -r stat <"/proc/$member/stat"
    set -- ${stat##*) } # from the third field on: the second is a name, which may contain anything
    [ "$#" -ge 22 ] || continue
    case $1 in
      T | t) stopped=$1 ;;
      R) runs=R ;;
      D) waits=D ;;
    esac
    own=${own:-$1}
    # The parent's fields include the CPU time of children that have ended.
    ticks=$((ticks + ${12} + ${13} + ${14} + ${15})) pages=$((pages + ${22}))
  done
  [ "$own" = D ] || own=${runs:-${waits:-$own}}
  state=${stopped:-$own}
  [ -n "$state" ]
} 2>/dev/null

ticks_per_s= page_kb=
# report_usage PID: reports the state and resource usage of the process, which also shows that this host is up.
report_usage() {
  ticks_per_s=${ticks_per_s:-$(getconf CLK_TCK 2>/dev/null || echo 100)}
  page_kb=${page_kb:-$(($(getconf PAGESIZE 2>/dev/null || echo 4096) / 1024))}
  ! usage "$1" || report usage "$attempt" "$state" "$ticks" "$ticks_per_s" "$((pages * page_kb))"
}
