# Functions of every script that runs a process of a job elsewhere. Before it, dmlc-submit puts the variables
# job (the mark of its notes) and index (of the process in the plan).

note() { printf '\036%s %s %s\036\n' "$job" "$index" "$*" >&2; }

pid= # of the command

# Waits for the command, whatever signals come meanwhile; leaves in `code` how it ended.
await() {
  while :; do
    wait "$pid" 2>/dev/null
    code=$?
    kill -0 "$pid" 2>/dev/null || break
  done
  # It may have ended while a signal was dealt with.
  [ "$code" -le 128 ] || { wait "$pid" && code=0 || { late=$?; [ "$late" = 127 ] || code=$late; }; } 2>/dev/null
  pid= # it may become another's
}

# unpack ARCHIVE DIRECTORY, for one process of a host at a time
unpack() {
  [ ! -d "$2" ] || return 0
  part=$2.$$.$(uname -n)
  mkdir "$part" || return
  case $1 in
    *.zip | *.jar | *.whl) unzip -q "$1" -d "$part" ;;
    *) tar -x -f "$1" -C "$part" ;;
  esac && mv -T "$part" "$2" 2>/dev/null || { rm -rf "$part"; [ -d "$2" ]; }
}
