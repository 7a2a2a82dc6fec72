# Functions for scripts whose processes share a machine with others. Needs common.sh before it, and the variable mark.
# The processes that the command starts inherit the mark in their environment, so they are found in any process group or
# session, unless the command has cleared its environment.

marked() { (cd /proc && grep -Fl "DMLC_SUBMIT_MARK=$mark$1;" [0-9]*/environ 2>/dev/null); }

# signal NAME [SUFFIX]: signals all processes with the mark followed by SUFFIX. Without a suffix, also signals the
# command itself, and its group if it leads one, since a command may have cleared its environment.
signal() {
  for found in $(marked "$2"); do kill -"$1" "${found%%/*}" 2>/dev/null; done
  [ -n "$2" ] || [ -z "$pid" ] || kill -"$1" "$pid" 2>/dev/null
  [ -n "$2" ] || [ -z "$group" ] || kill -"$1" -- "-$group" 2>/dev/null
}

# Asks the command and all processes with the mark to end, and kills those that remain after a grace period.
stop() {
  signal TERM
  signal CONT
  for step in 1 2 3 4 5 6; do
    sleep 0.1
    [ -n "$(marked)" ] || { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; } || return 0
  done
  signal KILL
}
group= # process group of the command, if it leads one
