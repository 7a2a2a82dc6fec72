"""warren._launch.hang, which detects a thread that hangs in a library call."""
import os
import pathlib
import sys
import threading
import types
import unittest

from warren._launch import hang
from warren_testing import wait_for

CALL, OTHER = ("frame", 1), ("frame", 2)


def hangs_after(observations):
    """The time of the first observation at which the thread is reported to hang, or None."""
    watch = hang.Watch()
    return next((at_s for at_s, used_s, call in observations if watch.hangs(hang.Observation(at_s, used_s, call))), None)


class Hang(unittest.TestCase):
    def test_a_call_that_does_nothing_hangs(self):
        self.assertEqual(hangs_after((.25 * step, .005 * step, CALL) for step in range(100)), hang.LIMIT_S)

    def test_a_call_that_works_does_not(self):
        self.assertIsNone(hangs_after((.25 * step, .02 * step, CALL) for step in range(400)))

    def test_nor_does_one_after_the_other(self):
        self.assertIsNone(hangs_after((.25 * step, 0, OTHER if step % 30 == 29 else CALL) for step in range(400)))

    def test_nor_does_a_thread_that_is_in_no_call_of_the_library(self):
        self.assertIsNone(hangs_after((.25 * step, 0, None) for step in range(400)))

    def test_a_process_that_was_stopped_has_its_time_again(self):
        self.assertEqual(hangs_after((.25 * step + (60 if step > 20 else 0), 0, CALL) for step in range(100)), 60 + .25 * 21 + hang.LIMIT_S)

    def observed(self, wait, *arguments):
        """Defines a function `wait` by the code in the argument `wait`, in a module library.part, and calls it in a new thread. Returns the
        thread once it runs code of that module."""
        module = types.ModuleType("library.part")
        exec(wait, vars(module))  # pylint: disable=exec-used
        found = []
        thread = threading.Thread(target=lambda: (found.append(hang.Thread.current()), module.wait(*arguments)))
        thread.start()
        self.addCleanup(thread.join)
        wait_for(lambda: found and sys._current_frames()[found[0].ident].f_globals["__name__"] == "library.part", 30)
        return found[0]

    def test_a_thread_is_seen_in_the_call_in_which_it_waits_for_another_one(self):
        lock = threading.Lock()
        with lock:
            thread = self.observed("def wait(lock):\n    with lock:\n        pass", lock)
            wait_for(lambda: hang.observe(thread, ["library"]).call is not None, 30)
            self.assertEqual(hang.observe(thread, ["library.part", "other"]).call, hang.observe(thread, ["library"]).call)
            self.assertIsNone(hang.observe(thread, ["lib", "part", "library.par"]).call)
            self.assertIsNone(hang.observe(hang.Thread.current(), ["library"]).call)
        wait_for(lambda: hang.observe(thread, ["library"]).call is None, 30)

    def test_a_thread_that_waits_for_a_pipe_is_in_no_such_call(self):
        reads, writes = os.pipe()
        thread = self.observed("import os\ndef wait(pipe):\n    os.read(pipe, 1)", reads)
        path = f"/proc/self/task/{thread.native_id}/syscall"
        wait_for(lambda: pathlib.Path(path).read_text(encoding="ascii").split()[0].isdigit(), 30)
        self.assertIsNone(hang.observe(thread, ["library"]).call)
        os.close(writes)


if __name__ == "__main__":
    unittest.main()
