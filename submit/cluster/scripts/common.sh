# Functions for every script that runs a process of a job on another host. `report` uses two variables: job (the mark of
# the job's messages) and index (the process's index in the plan).

report() { printf '\036%s %s %s\036\n' "$job" "$index" "$*" >&2; }

pid= # process ID of the command

# Waits for the command, even if signals arrive meanwhile; sets `code` to its exit code.
await() {
  while :; do
    wait "$pid" 2>/dev/null
    code=$?
    kill -0 "$pid" 2>/dev/null || break
  done
  # The command may have ended while a signal was being handled.
  [ "$code" -le 128 ] || { wait "$pid" && code=0 || { late=$?; [ "$late" = 127 ] || code=$late; }; } 2>/dev/null
  pid= # the system may reuse the number
}

# If $python_environment, the Python environment that dmlc-submit uses on its own host, also exists on this host, puts
# its commands first on PATH, as activating it does.
enter_environment() {
  [ -n "$python_environment" ] && [ -x "$python_environment/bin/python" ] || return 0
  PATH=$(cd -- "$python_environment/bin" && pwd):$PATH # the path of a copied environment is relative (--sync-dst-dir)
  export PATH
}

# missing_interpreter COMMAND...: prints an error if the command belongs to $python_environment and does not exist on
# this host.
missing_interpreter() {
  case $1 in
    "${python_environment:-none}"/*) [ -x "$1" ] || echo "there is no '$1' on $(uname -n), but the command stands for that file" \
      "where dmlc-submit runs: create that Python environment on this host, too, or give the path of the hosts' interpreter" \
      "('env ${1##*/}' uses the one on their PATH)" ;;
  esac
}

# Prints the number of cores of this host that the affinity mask and the quotas of the control groups (cgroup v2) allow
# this process to use.
usable_cores() {
  cores=$(unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
  group=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
  while :; do
    quota= period=
    if read -r quota period && [ "${quota:-max}" != max ]; then
      quota=$(((quota + period - 1) / period))
      [ "$quota" -ge "$cores" ] || cores=$quota
    fi 2>/dev/null </sys/fs/cgroup"$group"/cpu.max
    [ -n "$group" ] || break
    group=${group%/*}
  done
  echo "$cores"
}

# share_cores WORKERS CORES KEPT: exports OMP_NUM_THREADS unless it is set. Its value is CORES or, if that is empty,
# (usable cores - KEPT) / WORKERS, but at least 1.
share_cores() {
  [ -z "$OMP_NUM_THREADS" ] || return 0
  OMP_NUM_THREADS=${2:-$((($(usable_cores) - ${3:-0}) / ${1:-1}))}
  [ "$OMP_NUM_THREADS" -ge 1 ] || OMP_NUM_THREADS=1
  export OMP_NUM_THREADS
}

# tasks_of NODE LIST: prints the number of tasks on node number NODE, counted from 0. LIST is in Slurm's form: 2(x3),1
tasks_of() {
  node=$1
  for part in $(printf %s "$2" | tr ',' ' '); do
    times=1
    case $part in *x*) times=${part#*x} times=${times%)} ;; esac
    [ "$node" -ge "$times" ] || break
    node=$((node - times))
  done
  echo "${part%%(*}"
}

# host_cores ROOT: prints lists of cores, read from ROOT/proc and ROOT/sys, in four groups with "/" between them: the
# allowed cores, the hardware threads of each physical core, the cores of each NUMA node, and the cores that are online.
host_cores() {
  sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$1/proc/self/status"
  echo /
  cat "$1"/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list | sort -u
  echo /
  cat "$1"/sys/devices/system/node/node[0-9]*/cpulist
  echo /
  cat "$1"/sys/devices/system/cpu/online
} 2>/dev/null

# unpack ARCHIVE DIRECTORY: unpacks the archive unless the directory exists. Several processes may do this concurrently.
unpack() {
  [ ! -d "$2" ] || return 0
  part=$2.$$.$(uname -n)
  mkdir "$part" || return
  case $1 in
    *.zip | *.jar | *.whl) unzip -q "$1" -d "$part" ;;
    *) tar -x -f "$1" -C "$part" ;;
  esac && mv -T "$part" "$2" 2>/dev/null || { rm -rf "$part"; [ -d "$2" ]; }
}
