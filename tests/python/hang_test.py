"""Whether a call of a library hangs: warren._launch.hang."""
import threading
import time
import types
import unittest

from warren._launch import hang

CALL, OTHER = ("frame", 1), ("frame", 2)


def hangs_after(observations):
    """The time of the first observation after which the thread is said to hang, or None."""
    watch = hang.Watch()
    return next((at_s for at_s, used_s, call in observations if watch.hangs(hang.Observation(at_s, used_s, call))), None)


class Hang(unittest.TestCase):
    def test_a_call_that_does_nothing_hangs(self):
        self.assertEqual(hangs_after((.25 * step, .0005 * step, CALL) for step in range(100)), hang.LIMIT_S)

    def test_a_call_that_works_does_not(self):
        self.assertIsNone(hangs_after((.25 * step, .0125 * step, CALL) for step in range(400)))

    def test_nor_does_one_after_the_other(self):
        self.assertIsNone(hangs_after((.25 * step, 0, OTHER if step % 30 == 29 else CALL) for step in range(400)))

    def test_nor_does_a_thread_that_is_in_no_call_of_the_library(self):
        self.assertIsNone(hangs_after((.25 * step, 0, None) for step in range(400)))

    def test_a_process_that_was_stopped_has_its_time_again(self):
        self.assertEqual(hangs_after((.25 * step + (60 if step > 20 else 0), 0, CALL) for step in range(100)), 60 + .25 * 21 + hang.LIMIT_S)

    def test_a_thread_is_seen_in_the_call_that_it_is_in(self):
        module = types.ModuleType("library.part")
        exec("def wait(lock):\n    with lock:\n        pass", vars(module))  # pylint: disable=exec-used
        lock = threading.Lock()
        with lock:
            thread = threading.Thread(target=module.wait, args=[lock])
            thread.start()
            while hang.observe(thread.ident, ["library"]).call is None:
                time.sleep(.001)
            one, two = hang.observe(thread.ident, ["library.part", "other"]), hang.observe(thread.ident, ["library"])
            self.assertEqual(one.call, two.call)
            self.assertIsNone(hang.observe(thread.ident, ["lib", "part", "library.par"]).call)
            self.assertIsNone(hang.observe(threading.get_ident(), ["library"]).call)
        thread.join()
        self.assertIsNone(hang.observe(thread.ident, ["library"]).call)


if __name__ == "__main__":
    unittest.main()
