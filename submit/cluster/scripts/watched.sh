# Runs the command in "$@", started by ssh. Ends the command when standard input ends or, on a host with `timeout`,
# delivers no line for a minute, since the connection, or dmlc-submit, is then gone. Needs common.sh, marks.sh, usage.sh
# and stacks.sh before it, the variables job, index, attempt, mark, directory, python_environment and binds (empty: the
# command is not bound to cores), and the functions environment, which exports variables for the command only, and
# share, which gives the command its share of the cores.

cd -- "$directory" 2>/dev/null || {
  report fail "there is no directory '$directory' on $(uname -n)"
  exit 1
}
setsid=$(command -v setsid) || {
  report fail "there is no setsid on $(uname -n) (package util-linux)"
  exit 1
}
missing=$(missing_interpreter "$@")
[ -z "$missing" ] || {
  report fail "$missing"
  exit 1
}
exec 3<&0 </dev/null
# dmlc-submit knows all of the job's processes on this host and decides which cores this one is bound to.
bound=
if [ -n "$binds" ]; then
  threads=${OMP_NUM_THREADS%%[!0-9]*}
  report cores "$(usable_cores)" "${threads:-0}" $(host_cores "")
  read -r bound <&3 || exit 1
  [ -z "$bound" ] || taskset=$(command -v taskset) || {
    report fail "there is no taskset on $(uname -n) (package util-linux), which --bind needs (--bind none works without it)"
    exit 1
  }
fi
trap stop USR1 TERM HUP INT
trap : PIPE  # if dmlc-submit is gone, this script must end the command before it ends itself
(
  exec 3<&-
  share # before `environment`, which may change PATH
  enter_environment
  export DMLC_SUBMIT_MARK="$mark;"
  set -- ${bound:+"$taskset" -c "$bound"} "$setsid" "$@"
  environment # may set variables of any name, also of this script's own
  exec "$@"
) &
pid=$!
group=$pid # setsid makes the command the leader of its group
report start "$attempt" "$pid" "$(uname -n)"
tools_mark="$mark.watch;"
# The observer is a separate process, since writing its messages may block until they are read.
(
  trap - USR1 TERM HUP INT PIPE
  exec 3<&- >/dev/null
  asked=
  trap 'asked=1' USR2
  while kill -0 "$pid" 2>/dev/null; do
    DMLC_SUBMIT_MARK="$tools_mark" sleep "$usage_seconds" 2>/dev/null &
    wait "$!"
    [ -z "$asked" ] || {
      asked=
      begin_stacks "$pid"
    }
    report_usage "$pid"
  done
) &
observer=$!
DMLC_SUBMIT_MARK="$mark.watch;" setsid sh -c '
  limit=
  ! command -v timeout >/dev/null || limit="timeout 60"
  while :; do
    $limit sh -c "IFS= read -r word || exit 1; case \$word in leave) exit 4 ;; ?*) exit 3 ;; esac"
    case $? in
      0) ;;
      3) kill -USR2 "$2" ;; # a request for the stacks
      4) kill -TERM "-$3" ;; # a request to leave the job: the command ends when it is ready
      *) break ;;
    esac
  done
  kill -USR1 "$1"' sh $$ "$observer" "$pid" <&3 >/dev/null 2>&1 &
exec 3<&-
await
{
  end_family "$observer"
  wait "$observer"
} 2>/dev/null
# Processes that the command has left behind may still have something to write.
[ -z "$(marked)" ] || sleep 0.15
signal KILL
signal KILL .watch
report exit "$attempt" "$code"
exit "$code"
