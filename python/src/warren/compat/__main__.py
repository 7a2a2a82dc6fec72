"""python -m warren.compat: runs a script or a module unchanged, as described for warren.compat."""
import contextlib
import os
import runpy
import sys
import traceback
from typing import Any

from warren.compat import _imports

#: The exit code that shells report for a program ended by Ctrl-C.
_INTERRUPTED = 130


def _leave_xgboost_in_the_end(stack: contextlib.ExitStack) -> None:
    from warren._xgboost import communicator  # pylint: disable=import-outside-toplevel
    stack.enter_context(communicator.leave_on_exit())


def _horovod_has_failed(_: Any, error: Any, __: Any) -> None:
    """Abandons Horovod's job after an error: a rank that fails must not wait until the others have finished."""
    job = sys.modules.get("warren.horovod._job")
    if job is not None and error is not None and not (isinstance(error, SystemExit) and not error.code):
        job.abandon()


def main() -> None:
    """Runs the script named by the arguments. Exceptions propagate, so that the tracker notices the failure, and the exit code is Python's usual
    one for the exception, or 130 for KeyboardInterrupt."""
    if len(sys.argv) < 2 or sys.argv[1:] == ["-m"]:
        sys.exit("usage: python -m warren.compat SCRIPT [ARGUMENT...]\n       python -m warren.compat -m MODULE [ARGUMENT...]")
    is_module = sys.argv[1] == "-m"
    sys.argv = sys.argv[2 if is_module else 1:]
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(sys.argv[0]))
    try:
        with contextlib.ExitStack() as stack:
            stack.push(_horovod_has_failed)
            _imports.when_xgboost_is_there(lambda: _leave_xgboost_in_the_end(stack))
            if is_module:
                runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(sys.argv[0], run_name="__main__")
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.exit(_INTERRUPTED)


main()
