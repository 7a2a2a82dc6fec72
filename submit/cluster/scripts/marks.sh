# Functions of the scripts whose processes share a machine with others. Before it: common.sh; mark (in the environment of
# all that the process starts, by which that is found, in whichever group or session it is).

marked() { (cd /proc && grep -Fl "DMLC_SUBMIT_MARK=$mark$1;" [0-9]*/environ 2>/dev/null); }

# signal NAME [SUFFIX]: to all that have the mark; without a suffix to the command itself, too, and its group if it leads
# one, which a command may keep although it has given up its environment.
signal() {
  for found in $(marked "$2"); do kill -"$1" "${found%%/*}" 2>/dev/null; done
  [ -n "$2" ] || [ -z "$pid" ] || kill -"$1" "$pid" 2>/dev/null
  [ -n "$2" ] || [ -z "$group" ] || kill -"$1" -- "-$group" 2>/dev/null
}

# Asks all of them to end, and ends them after a grace time.
stop() {
  signal TERM
  signal CONT
  for step in 1 2 3 4 5 6; do
    sleep 0.1
    [ -n "$(marked)" ] || { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; } || return 0
  done
  signal KILL
}
group= # of the command, if it leads one
