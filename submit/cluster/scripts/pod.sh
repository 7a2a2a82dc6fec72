# Runs the command in "$@" as the first process of a container in a Kubernetes pod, and restarts the command when it
# fails, up to `restarts` times. Needs common.sh before it, and:
# - the variables job (empty: no messages), rank, first (the index of rank 0 in the plan), attempt (the number of the
#   first attempt in the first pod), restarts, killed_only (not empty: only a command that a signal has killed is
#   restarted), awaited (a host name that must resolve before the command starts; empty: none), patience (the maximum
#   number of seconds to wait for that), tracker (words of a command to run alongside rank 0; empty: none);
# - the variable told, and a handler of TERM, INT and HUP that sets it to `stopped`;
# - the functions environment, which exports variables for the command only; place, which exports those that differ
#   between processes; and place_files.

say() { printf 'dmlc-submit: %s: %s\n' "$(uname -n)" "$*" >&2; }
[ -n "$job" ] || report() { :; }
case $rank in
  '' | *[!0-9]*)
    say "Kubernetes did not give this process an index"
    exit 1
    ;;
esac
index=$((first + rank))
# Kubernetes has replaced this pod `replaced` times because its command failed or was killed, and in an elastic job also
# `disrupted` times because Kubernetes itself had ended it, which does not count as a restart.
replaced=${DMLC_SUBMIT_REPLACED:-0} disrupted=${DMLC_SUBMIT_DISRUPTED:-0}
unset DMLC_SUBMIT_REPLACED DMLC_SUBMIT_DISRUPTED
attempt=$((attempt + replaced + disrupted)) restarts=$((restarts - replaced))

# copy FILE NAME [x]: copies under a temporary name first, since other processes may share the directory
copy() { cp -- "$1" "./$2.$(uname -n)" && { [ -z "$3" ] || chmod +x "./$2.$(uname -n)"; } && mv -f -- "./$2.$(uname -n)" "./$2"; }
place_files || {
  say "cannot put the shipped files into $(pwd)"
  exit 1
}

# may_restart CODE: succeeds if a command that exited with this code is to be restarted, as far as the code decides.
may_restart() {
  [ -z "$killed_only" ] && [ "$1" -ne 0 ] || { [ "$1" -gt 128 ] && [ "$1" -lt 160 ]; }
}

# Succeeds if the last process that this script has started is still a copy of this script, and not the command yet.
is_starting() {
  own=$(cat /proc/$$/cmdline)
  [ -n "$own" ] && [ "$own" = "$(cat /proc/$!/cmdline)" ]
}

pid= trackers_pid=
stop_all() {
  told=stopped
  # If this script is the first process of the container, all others belong to the job; otherwise, some may not.
  if [ $$ = 1 ]; then kill -TERM -1; elif [ -n "$pid" ]; then kill -TERM "$pid"; fi
  # A process loses a signal that comes before it has reset the handlers that it has inherited from this script.
  tries=0
  while [ "$tries" -lt 50 ] && is_starting; do
    kill -TERM $!
    sleep 0.1
    tries=$((tries + 1))
  done
} 2>/dev/null
trap stop_all TERM INT HUP

if [ -n "$awaited" ] && command -v getent >/dev/null; then
  waited=0
  until getent hosts "$awaited" >/dev/null || [ -n "$told" ] || [ "$waited" -ge "$patience" ]; do
    waited=$((waited + 1))
    sleep 1 &
    wait "$!"
  done
fi
[ -z "$tracker" ] || [ "$rank" -ne 0 ] || {
  (
    set -- $tracker
    environment
    exec "$@"
  ) >/dev/null &
  trackers_pid=$!
}

while [ -z "$told" ]; do
  (
    [ -z "$told" ] || exit 143 # the signal came before the fork
    export DMLC_TASK_ID="$rank" DMLC_NUM_ATTEMPT="$attempt"
    place
    unset $script_variables
    environment # may set variables of any name, also of this script's own
    exec "$@"
  ) &
  pid=$!
  report start "$attempt" "$pid" "$(uname -n)"
  await
  # The command was told to end with its pod, so its own exit code does not count.
  [ -z "$told" ] || code=143
  may_restart "$code" && [ -z "$told" ] && [ "$restarts" -gt 0 ] || break
  # Processes that the command has left behind would disturb the next attempt.
  [ $$ != 1 ] || [ -n "$trackers_pid" ] || { kill -KILL -1; sleep 0.1; } 2>/dev/null
  report again "$attempt" "$code"
  [ -n "$job" ] || say "attempt $attempt ended with code $code, starting it again"
  attempt=$((attempt + 1)) restarts=$((restarts - 1))
done
[ -z "$told" ] || [ -n "$code" ] || exit 143
report "${told:-exit}" "$attempt" "$code"
# Other pods may still need the tracker in order to succeed.
[ "$code" -ne 0 ] || [ -z "$trackers_pid" ] || wait "$trackers_pid"
exit "$code"
