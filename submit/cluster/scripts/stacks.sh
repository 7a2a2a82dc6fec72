# Shows the stacks of a process and its descendants, to help a person find out why a job makes no progress. Needs
# usage.sh before it.

stacks_seconds=10 # time limit for each tool and process: a process that waits for a dead disk may block the tool, too
# Time limit for all tools and processes together; the requester waits longer (kStacksPatience).
stacks_limit=22
stacks_processes=8
stacks_bytes=64000

# read_clock: sets `seconds` to the uptime of this host
read_clock() {
  seconds=0
  read -r seconds rest </proc/uptime
  seconds=${seconds%%.*}
} 2>/dev/null

# limited TOOL...: runs a tool for at most stacks_seconds, and at most until stacks_end; without these limits if the
# host has no `timeout`. The tool runs in the foreground, i.e. in the process group of this shell, so that it ends with
# the shell.
limited() {
  limit=
  read_clock
  left=$((stacks_end - seconds))
  [ "$left" -le "$stacks_seconds" ] || left=$stacks_seconds
  [ "$left" -gt 0 ] || {
    echo "there is no time left"
    return 1
  }
  if command -v timeout >/dev/null; then
    limit="timeout -k 1"
    ! timeout --foreground 1 true || limit="timeout --foreground -k 1"
  fi 2>/dev/null
  ${limit:+$limit "$left"} "$@" </dev/null
}

# why_not SAID: prints the message of a tool that could not examine a process, and what to do about it
why_not() {
  printf '%s\n' "$1" | tail -n 5
  scope=0
  read -r scope </proc/sys/kernel/yama/ptrace_scope
  case $scope in
    0) [ "$(id -u)" = 0 ] || echo "(only root can inspect processes of other users and programs with extra privileges)" ;;
    *)
      echo "(kernel.yama.ptrace_scope is $scope on $(uname -n): a process may inspect only its own children; as root:" \
        "sysctl kernel.yama.ptrace_scope=0)"
      ;;
  esac
} 2>/dev/null

# kernel_side PID: prints the process's state as the kernel reports it without a debugger
kernel_side() {
  what= waits= call=
  what=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status")
  read -r waits <"/proc/$1/wchan"
  read -r call <"/proc/$1/syscall"
  name=
  read -r name <"/proc/$1/comm"
  [ "${waits:-0}" = 0 ] && waits= || waits=", waits in the kernel's $waits"
  case $call in
    '' | running) call= ;;
    *) call=", in system call ${call%% *}" ;;
  esac
  echo "process $1 ($name): ${what:-gone}$waits$call"
} 2>/dev/null

# python_side PID: prints the Python stacks; fails if they are not available
python_side() {
  # py-spy may also be installed next to the process's own Python.
  words=$(tr '\0' '\n' <"/proc/$1/cmdline" | head -n 1)
  paths=$(tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^PATH=//p')
  spy=$(PATH=$PATH:$paths:${words%/*}; command -v py-spy) || return
  # py-spy cannot stop a process that is already stopped.
  case $what in T* | t*) nonblocking=--nonblocking ;; *) nonblocking= ;; esac
  said=$(limited "$spy" dump $nonblocking --pid "$1" 2>&1) && { printf '%s\n' "$said"; return; }
  echo "py-spy showed no stack (code $?; limit: $stacks_seconds s):"
  why_not "$said"
  return 1
} 2>/dev/null

# native_side PID: prints the native stacks; fails if they are not available
native_side() {
  gdb=$(command -v gdb) || return
  said=$(limited "$gdb" -nx -batch -iex 'set debuginfod enabled off' -ex 'set pagination off' -ex 'thread apply all bt 40' -p "$1" 2>&1)
  case $said in
    *'#0 '*) printf '%s\n' "$said" | sed -n '/^Thread /,$p' | grep -v -e '^\[Inferior ' -e '^$' ;;
    *)
      echo "gdb showed no stack (limit: $stacks_seconds s):"
      why_not "$said"
      return 1
      ;;
  esac
} 2>/dev/null

# kernel_stack PID: prints the kernel stack, which only root may read
kernel_stack() { [ ! -r "/proc/$1/stack" ] || sed 's/^\[<[0-9a-f]*>\]/  kernel:/' "/proc/$1/stack" 2>/dev/null; }

# stacks PID: prints the stacks of the process and its descendants. A program other than Python that has children, such
# as a shell that waits for them, is only listed.
stacks() {
  find_family "$1"
  count=0 missing= missing_spy= spy=
  read_clock
  stacks_end=$((seconds + stacks_limit))
  for one in $family; do
    [ "$((count += 1))" -le "$stacks_processes" ] || {
      echo "(and more processes)"
      break
    }
    read_clock
    [ "$seconds" -lt "$stacks_end" ] || {
      echo "(and more processes; inspecting these took $stacks_limit s)"
      break
    }
    kernel_side "$one"
    whole=$family
    find_family "$one"
    children=${family#"$one"} family=$whole
    case $(readlink "/proc/$one/exe") in
      */python*) python=1 ;;
      *) python=$(grep -m 1 -o libpython "/proc/$one/maps" 2>/dev/null) ;;
    esac
    if [ -n "$python" ]; then
      python_side "$one" || {
        [ -n "$spy" ] || missing_spy=1
        native_side "$one" || { kernel_stack "$one"; missing=gdb; }
      }
    elif [ -z "$children" ]; then
      native_side "$one" || { kernel_stack "$one"; missing=gdb; }
    fi
  done
  # gdb shows the lines of the interpreter, not those of the Python program.
  [ -z "$missing_spy" ] ||
    echo "(py-spy is not installed on $(uname -n); it shows lines of Python: pip install py-spy, in the workers' environment)"
  [ -z "$missing" ] || command -v gdb >/dev/null ||
    echo "(gdb is not installed on $(uname -n); it shows where a program is in C and C++)"
}

# limited_stacks PID: prints the stacks, truncated to a readable length
limited_stacks() { stacks "$1" | tr -d '\036' | cut -b -2000 | head -c "$stacks_bytes"; }

# report_stacks PID: sends each line of the stacks as a message that is short enough to pass through a pipe in one piece.
# The environment of the tools that it starts contains `tools_mark`.
report_stacks() {
  (
    export DMLC_SUBMIT_MARK="$tools_mark"
    limited_stacks "$1"
  ) | while IFS= read -r line || [ -n "$line" ]; do report stack "$attempt" "$line"; done
  report stacks "$attempt"
}

stacks_pid= # process ID of the report in progress
# begin_stacks PID: reports the stacks in the background, while this shell continues to report that this host is up.
# There is one report at a time, which also answers requests that arrive meanwhile.
begin_stacks() {
  read_clock
  if is_child "$stacks_pid"; then
    [ "$seconds" -ge "$stacks_due" ] || return 0
    end_family "$stacks_pid" # the report hangs, although its tools have time limits (see limited)
  fi
  stacks_due=$((seconds + stacks_limit + 3))
  report_stacks "$1" &
  stacks_pid=$!
}

# is_child PID: succeeds if the process is a child of this shell and is still running
is_child() {
  [ -n "$1" ] && read -r stat <"/proc/$1/stat" && read -r own </proc/self/stat || return
  set -- ${stat##*) }
  [ "$1" != Z ] && [ "$2" = "${own%% *}" ]
} 2>/dev/null
