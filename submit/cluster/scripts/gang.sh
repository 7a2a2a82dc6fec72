# Runs the command in "$@" as one of `count` processes that one launcher started (mpirun, srun, a queue), and reports to
# dmlc-submit over connections made by bash: see agent_sessions.h. dmlc-submit decides when to start the command; when
# the connection that carries its requests closes, or delivers no line for a minute, this script ends the command. Needs
# common.sh, marks.sh, usage.sh and stacks.sh before it, and:
# - the variables job, rank, count, first (the index of rank 0 in the plan), directory, python_environment,
#   rendezvous_host, rendezvous_port, port_variable, script_variables (names of variables to hide from the command), and
#   either agent_key or secrets_file: a file with the agent's key and the secret variables of the command, which
#   `environment` exports otherwise;
# - the functions environment, which exports variables for the command only; place, which exports those that differ
#   between processes; share, which gives the command its share of the cores; and unpack_all.

say() { printf 'dmlc-submit: rank %s on %s: %s\n' "$rank" "$(uname -n)" "$*" >&2; }
case $rank in
  '' | *[!0-9]*)
    say "the launcher did not give this process a rank"
    exit 1
    ;;
esac
if [ "$rank" -ge "$count" ]; then
  say "$count processes were requested, but the launcher started more"
  exit 1
fi
index=$((first + rank))
exec </dev/null
cd -- "$directory" 2>/dev/null || {
  say "there is no directory '$directory'"
  exit 1
}
unpack_all || {
  say "the archives cannot be unpacked"
  exit 1
}

# Sets up the environment of the process, from the `attempt`, `port` and `master` (the address of worker 0's host) that
# dmlc-submit sent last.
begin() {
  share # before `environment`, which may change PATH
  enter_environment
  place
  export DMLC_TASK_ID="$rank" DMLC_NUM_ATTEMPT="${attempt:-0}"
  eval "$secrets"
  # `environment` may set variables of any name, also of this script's own.
  set -- "$port_variable" "$port" $script_variables
  environment
  [ -z "$2" ] || [ "$2" = 0 ] || export "$1=$2"
  shift 2
  unset "$@"
}

attempt= port= master= secrets=
if [ -z "$BASH_VERSION" ]; then
  say "there is no bash: output goes through the launcher, and a failure ends the job"
  begin
  exec "$@"
fi
call=$$.$RANDOM$RANDOM
host=$(uname -n)
[ -z "$secrets_file" ] || agent_key=$(sed -n 's/^agent_key=//p' "$secrets_file" 2>/dev/null)
# The first line follows the connection at once, because dmlc-submit limits the number of connections without one.
for try in 1 2 3; do
  { exec {rendezvous}<>"/dev/tcp/$rendezvous_host/$rendezvous_port"; } 2>/dev/null && break
  rendezvous=
  sleep 1
done
[ -n "$rendezvous" ] || {
  say "cannot reach dmlc-submit at $rendezvous_host port $rendezvous_port (change the address with --host-ip)"
  exit 1
}
[ -n "$agent_key" ] || {
  printf '%s %s keyless %s %s\n' "$job" "$index" "$call" "$host" >&"$rendezvous"
  say "cannot read the job's token in '$secrets_file'"
  exit 1
}
printf '%s %s err %s %s\n' "$agent_key" "$index" "$call" "$host" >&"$rendezvous"
report() { printf '\036%s %s %s\036\n' "$job" "$index" "$*" >&"$rendezvous"; }
told= # "stopped" once the launcher or the queue, not dmlc-submit, has asked this process to end
trap stop USR1
trap 'told=stopped; stop' TERM HUP INT
trap : PIPE # if dmlc-submit is gone, this script must end the command before it ends itself

# Runs the command once. Its standard output and error are pipes, from which `cat` relays them to dmlc-submit.
run() {
  missing=$(missing_interpreter "$@")
  [ -z "$missing" ] || {
    report fail "$missing"
    exit 1
  }
  [ -z "$secrets_file" ] || secrets=$(cat -- "$secrets_file") || {
    report fail "$host cannot read the job's token in '$secrets_file': the hosts must share the directory in which" \
      "dmlc-submit is started"
    exit 1
  }
  pipes=$(mktemp -d) && mkfifo "$pipes/out" "$pipes/err" "$pipes/wishes" || {
    report fail "cannot create a pipe in ${TMPDIR:-/tmp}"
    exit 1
  }
  exec {out}>"/dev/tcp/$rendezvous_host/$rendezvous_port" || exit 1
  printf '%s %s out %s %s\n' "$agent_key" "$index" "$call" "$host" >&"$out"
  (trap '' TERM HUP INT; exec cat <"$pipes/out" >&"$out" {out}>&- {rendezvous}>&-) &
  relay_out=$!
  (trap '' TERM HUP INT; exec cat <"$pipes/err" >&"$rendezvous" {out}>&- {rendezvous}>&-) &
  relay_err=$!
  exec {to_out}>"$pipes/out" {to_err}>"$pipes/err" {wishes}<>"$pipes/wishes" {out}>&-
  rm -r "$pipes"
  mark=$job.$index.$attempt
  (
    export DMLC_SUBMIT_MARK="$mark;"
    exec >&"$to_out" 2>&"$to_err" {to_out}>&- {to_err}>&- {wishes}>&- {rendezvous}>&-
    begin
    exec "$@"
  ) &
  pid=$!
  report start "$attempt" "$pid" "$host"
  # The observer writes its messages to the command's standard error, a pipe, which keeps each message in one piece. The
  # observer is a separate process because it must wait while the pipe is full.
  (
    trap - USR1 TERM HUP INT PIPE
    exec {to_out}>&- {rendezvous}>&-
    report() { printf '\036%s %s %s\036\n' "$job" "$index" "$*" >&"$to_err"; }
    tools_mark="$mark;"
    while kill -0 "$pid" && kill -0 $$; do
      if read -r -t "$usage_seconds" -u "$wishes" word; then begin_stacks "$pid"; else report_usage "$pid"; fi
    done
  ) &
  observer=$!
  exec {to_out}>&- {to_err}>&-
  (
    trap - USR1 TERM HUP INT
    while read -r -t 60 -u "$rendezvous" word; do
      case $word in
        '') kill -0 $$ || break ;;
        stacks) echo >&"$wishes" ;;
        *) break ;;
      esac
    done
    kill -USR1 $$ || stop
  ) 2>/dev/null &
  watch=$!
  exec {wishes}>&-
  await
  kill -KILL "$watch"
  end_family "$observer"
  wait "$watch" "$observer"
  # Processes that the command has left behind may still have something to write.
  [ -z "$(marked)" ] || sleep 0.15
  signal KILL
  # All output is relayed before the exit is reported, however slowly dmlc-submit reads it. If a process holds the
  # pipes open but writes nothing, dmlc-submit ends the wait with "done".
  report ended "$attempt"
  while kill -0 "$relay_out" || kill -0 "$relay_err"; do
    read -r -t 0.05 -u "$rendezvous" word
    case $? in
      0) [ "$word" != done ] || break ;;
      1) break ;; # the connection is closed
    esac
  done
  kill -KILL "$relay_out" "$relay_err"
  report "${told:-exit}" "$attempt" "$code"
} 2>/dev/null

code=1
while read -r -t 60 -u "$rendezvous" word next port master; do
  case $word in
    '' | stacks) continue ;; # a heartbeat, or a request for the process that has just ended
    go) attempt=$next ;;
    *) break ;;
  esac
  run "$@"
  [ "$code" -ne 0 ] && [ -z "$told" ] || break
done
exit "$code"
