"""The errors of a failing job on the terminal: the first error is shown completely and last, and its consequences are folded."""

import json
import signal
import unittest

from submit_case import IDLE, LIMIT_S, SubmitCase, python

ALL_SHOWN = "(--show-all-errors shows their output)"
TRACEBACK = "Traceback (most recent call last):"

# Worker 1 fails once every other worker has written a traceback that names worker 1. The other workers then sleep, and react to SIGTERM as
# Python does by default.
ONE_RAISES = r"""
import os, pathlib, sys, time, traceback
task = os.environ['DMLC_TASK_ID']
def wait_for(pattern):
    while len(list(pathlib.Path('.').glob(pattern))) < int(os.environ['DMLC_NUM_WORKER']) - 1: time.sleep(0.01)
if task == '1':
    wait_for('echo-*')
    FAIL
try:
    raise ConnectionError(f'{task} lost worker 1')
except ConnectionError:
    traceback.print_exc()
pathlib.Path('echo-' + task).touch()
time.sleep(600)
"""


def one_raises(fail="raise ValueError('no column 7')"):
    return python(ONE_RAISES.replace("FAIL", fail))


class Errors(SubmitCase):
    def shown_by(self, process, rank):
        return [line.partition("] ")[2] for line in process.err.splitlines() if line.startswith(f"[{rank}] ")]

    def test_the_first_ones_traceback_is_the_only_one_and_comes_last(self):
        process = self.submit("--num-workers", 4, "--log-dir", "logs", *one_raises(), exit_code=1)
        self.assertEqual(process.err.count(TRACEBACK), 1, process.err)
        lines = process.err.splitlines()
        begin = lines.index(f"[1] {TRACEBACK}")
        self.assertEqual(lines[begin - 1], f"dmlc-submit: [0] [2] [3] failed as a consequence {ALL_SHOWN}")
        self.assertEqual(lines[-2], "[1] ValueError: no column 7")
        self.assertTrue(all(line.startswith("[1] ") for line in lines[begin:-1]), process.err)
        self.assertRegex(lines[-1], r"^dmlc-submit: error: worker 1 \(host .*\) exited with code 1 on attempt 1 of 1; "
                                    "the other 3 processes were stopped$")
        self.assertNotIn("the last output of", process.err)
        for task in range(4):  # logs are not folded
            self.assertIn(TRACEBACK, self.file(f"logs/worker-{task}.log").read_text())

    def test_a_program_that_cannot_start_says_so_once(self):
        self.file("syntax.py").write_text("if True\n    pass\n")
        for command, said in ((["syntax.py"], "SyntaxError: "), (["nonesuch.py"], "can't open file"), (["-m", "nonesuch"], "No module named"),
                              (["-c", "import argparse; argparse.ArgumentParser().parse_args(['--x'])"], "error: unrecognized arguments")):
            process = self.submit("--num-workers", 3, python("")[0], *command)
            self.assertEqual(process.err.count(said), 1, process.err)
            self.assertNotEqual(process.returncode, 0)

    def test_all_errors_are_shown_as_they_come_when_asked_for(self):
        process = self.submit("--num-workers", 4, "--show-all-errors", *one_raises())
        self.assertEqual(process.err.count(TRACEBACK), 4 + 1, process.err)  # worker 1's traceback is shown again as its last output
        self.assertIn("the last output of worker 1:", process.err)
        self.assertNotIn("as a consequence", process.err)

    def test_one_that_is_killed_without_a_word_is_named_and_the_others_folded(self):
        process = self.submit("--num-workers", 3, *one_raises("print('rows: 7', flush=True); os.kill(os.getpid(), 9)"),
                              exit_code=128 + signal.SIGKILL)
        self.assertNotIn(TRACEBACK, process.err)
        self.assertEqual(
            process.err.splitlines()[-4:-1],
            [f"dmlc-submit: [0] [2] failed as a consequence {ALL_SHOWN}", "dmlc-submit: the last output of worker 1:",
             "dmlc-submit:   | rows: 7"])

    def test_when_all_fail_for_one_reason_it_is_shown_once(self):
        code = (
            "import os, pathlib, sys, time, traceback\n"
            "try: open('part-' + os.environ['DMLC_TASK_ID'] + '.txt')\n"
            "except OSError: traceback.print_exc()\n"
            "pathlib.Path('said-' + os.environ['DMLC_TASK_ID']).touch()\n"
            "while len(list(pathlib.Path('.').glob('said-*'))) < 4: time.sleep(0.01)\n"
            "sys.exit(3)\n"
        )
        process = self.submit("--num-workers", 4, *python(code), exit_code=3)
        self.assertEqual(process.err.count(TRACEBACK), 1, process.err)
        self.assertIn(f"dmlc-submit: all 4 workers failed with the same error {ALL_SHOWN}", process.err)

    def test_an_error_before_another_attempt_is_shown_with_the_warning(self):
        code = "import os; n = os.environ['DMLC_NUM_ATTEMPT']\nif n < '1': raise ValueError('attempt ' + n)"
        for option in ("--local-num-attempt", "--max-restarts"):
            process = self.submit("--num-workers", 1, option, 1, *python(code), exit_code=0)
            self.assertEqual(process.err.count(TRACEBACK), 1, process.err)
            lines = process.err.splitlines()
            self.assertIn("again", lines[lines.index("[0] ValueError: attempt 0") + 1])

    def test_what_followed_is_folded_when_the_whole_job_is_begun_again(self):
        again = "sys.exit(0) if os.environ['DMLC_NUM_ATTEMPT'] == '1' else None\ndef wait_for"
        command = [word.replace("def wait_for", again) for word in one_raises()]
        process = self.submit("--num-workers", 3, "--max-restarts", 1, *command, exit_code=0)
        self.assertEqual(process.err.count(TRACEBACK), 1, process.err)
        self.assertRegex(process.err, r"(?s)\[1\] ValueError: no column 7\ndmlc-submit: warning: worker 1 .*starting all 3 "
                                      r"processes again.*dmlc-submit: \[0\] \[2\] failed as a consequence")

    def test_what_interrupted_workers_say_is_folded(self):
        code = ("import os, pathlib, signal, time; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
                "pathlib.Path('up-' + os.environ['DMLC_TASK_ID']).write_text('x'); time.sleep(600)")
        process = self.start("--num-workers", 3, *python(code))
        self.wait_for_files("up-0", "up-1", "up-2")
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=LIMIT_S)[1].decode()
        self.assertEqual(process.returncode, 130)
        self.assertNotIn("KeyboardInterrupt", err)
        self.assertIn(f"dmlc-submit: [0] [1] [2] reported errors while they were stopped {ALL_SHOWN}", err)

    def test_an_error_that_is_survived_is_shown_in_its_place(self):
        code = "import sys, traceback\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()\nprint('on', file=sys.stderr)"
        process = self.submit("--num-workers", 1, *python(code), exit_code=0)
        self.assertEqual(self.shown_by(process, 0)[-2:], ["ZeroDivisionError: division by zero", "on"])
        process = self.start("--num-workers", 1, *python(code + f"\nsys.stderr.flush(); {IDLE}"))
        self.assertIn("division by zero", self.wait_for_text(process.stderr, "[0] on"))

    # --- amount and format of messages ----------------------------------------------------------------------

    def test_quiet_leaves_warnings_errors_and_the_workers(self):
        command = ["sh", "-c", "echo out; echo err >&2; exit $((1 - DMLC_NUM_ATTEMPT))"]
        loud = self.submit("--num-workers", 2, "--local-num-attempt", 1, *command)
        self.assertIn("each worker uses", loud.err)
        for option in ("--quiet", "-q"):
            process = self.submit(option, "--num-workers", 2, "--log-file", "log", "--local-num-attempt", 1, *command)
            own = [line for line in process.err.splitlines() if line.startswith("dmlc-submit:")]
            self.assertEqual(len(own), 2, process.err)
            self.assertTrue(all(line.startswith("dmlc-submit: warning: ") for line in own))
            self.assertEqual(sorted(process.out.splitlines()), ["[0] out"] * 2 + ["[1] out"] * 2)
            self.assertIn("each worker uses", self.file("log").read_text())
        process = self.submit("--quiet", "--num-workers", 1, "--log-file", "log", "--metrics-port", 0, "true")
        self.assertRegex(process.err, "metrics: http")
        self.assertRegex(self.file("log").read_text(), "metrics: http")

    def test_json_has_an_object_for_each_line(self):
        code = (
            "import os, sys, socket; task = os.environ['DMLC_TASK_ID']\n"
            "sys.stdout.buffer.write(b'a\\xff' + b'x' * 70000 + b'\\n'); sys.stdout.flush()\n"
            "print('last words', end='', file=sys.stderr, flush=True); sys.exit(int(task))"
        )
        process = self.submit("--num-workers", 2, "--log-format", "json", "--color", "always", "--log-file", "log", *python(code),
                              exit_code=1)
        out = [json.loads(line) for line in process.out.splitlines()]
        err = [json.loads(line) for line in process.err.splitlines()]
        for line in out + err:
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        of_one = [line for line in out if line["task"] == 1]
        self.assertEqual([line.get("partial") for line in of_one], [True, None])
        self.assertEqual("".join(line["text"] for line in of_one), "a\ufffd" + "x" * 70000)
        self.assertIn(("worker", 1, "stderr", "last words"),
                      [(line["source"], line.get("task"), line.get("stream"), line["text"]) for line in err])
        self.assertEqual((err[-1]["source"], err[-1]["level"]), ("dmlc-submit", "error"))
        log = [json.loads(line) for line in self.file("log").read_text().splitlines()]
        self.assertEqual(log[-1]["text"], err[-1]["text"])

    def test_json_has_what_workers_print_by_way_of_the_tracker_and_the_round_even_if_the_job_is_short(self):
        self.file("worker.py").write_text(
            "import os\n"
            "from warren_testing import ClassicWorker\n"
            "address = os.environ['DMLC_TRACKER_URI'], int(os.environ['DMLC_TRACKER_PORT'])\n"
            "worker = ClassicWorker(address, int(os.environ['DMLC_TASK_ID']))\n"
            "worker.start()\n"
            "worker.print('[0]\\ttrain-rmse:0.5\\n')\n"
            "worker.shutdown()\n"
        )
        process = self.submit("--num-workers", 1, "--log-format", "json", "/usr/bin/python3", "worker.py", exit_code=0)
        printed = [json.loads(line) for line in process.out.splitlines()]
        self.assertEqual([(line["source"], line["text"]) for line in printed], [("tracker", "[0]\ttrain-rmse:0.5")])
        progress = [line for line in map(json.loads, process.err.splitlines()) if line["source"] == "progress"]
        self.assertEqual([(line["round"], line["metrics"]) for line in progress], [(0, {"train-rmse": 0.5})])


if __name__ == "__main__":
    unittest.main()
