"""Monitoring of real jobs, whose workers use Warren's engine, stock XGBoost, or neither: the live line, hanging workers, ranks that make
the others wait, the timeline, metrics, the kept page, the history."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

from submit_case import LIMIT_S, SubmitCase, path_with_py_spy, python
from warren_testing import BIN, wait_for

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
WORKER = SOURCE / "tests/submit/monitor/watched_worker.py"
PACKAGE = {"PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent), "OMP_NUM_THREADS": "1"}


class Watched(SubmitCase):
    def environment(self, extra=None):
        history = {"XDG_STATE_HOME": str(self.directory / "state")}
        return super().environment({**PACKAGE, **history, **(extra or {})})

    def job(self, *words, workers=3, **settings):
        return self.start("--num-workers", workers, *words, **settings)

    def ended_job(self, *words, workers=3, exit_code=0, **settings):
        return self.submit("--num-workers", workers, *words, exit_code=exit_code, **settings)

    def listed_jobs(self):
        """What `warren jobs` prints."""
        return subprocess.run([sys.executable, "-m", "warren", "jobs"], capture_output=True, text=True,
                              env=self.environment(), check=True).stdout  # fmt: skip

    def worker(self, *words):
        return [sys.executable, WORKER, *words]

    def end_and_read(self, process, sent=signal.SIGTERM):
        process.send_signal(sent)
        _, err = process.communicate(timeout=LIMIT_S)
        return err.decode()


class Terminal(Watched):
    def lines_on_terminal(self, *words, columns=150):
        """Runs dmlc-submit on a terminal. Returns its output, split at newlines and where the live line is erased, and its exit code."""
        shown, code = self.on_terminal(*words, columns=columns)
        return re.split(r"\r\x1b\[J|\r?\n", shown), code

    def test_rounds_metric_time_left_and_who_makes_the_others_wait(self):
        lines, code = self.lines_on_terminal("--num-workers", 3, *self.worker("late-rank", "20", "0.25"))
        self.assertEqual(code, 0, lines)
        live = [line for line in lines if " | 3 workers | round " in line]
        self.assertTrue(live, lines)
        wanted = (r"^dmlc-submit: \d:\d\d \| 3 workers \| round \d+ of 20 \| rmse 0\.\d+ \| "
                  r"[\d.]+ (rounds/s|s a round) \| \d:\d\d left \| rank 1 makes the others wait \d\d % of the time")
        self.assertTrue(any(re.search(wanted, line) for line in live), live)
        self.assertTrue(any("all 3 workers are up" in line for line in lines), lines)
        self.assertEqual(lines[-1], "", "nothing of it stays")

    def test_a_narrow_terminal_gets_what_matters_most(self):
        lines, _ = self.lines_on_terminal("--num-workers", 2, *self.worker("rounds", "12", "0.2"), columns=50)
        live = [line for line in lines if "round" in line]
        self.assertTrue(live, lines)
        for line in live:
            self.assertLess(len(line), 50)

    def test_reading_is_summed_up(self):
        lines, _ = self.lines_on_terminal("--num-workers", 2, *self.worker("reads"))
        reading = r"reading rows\.parquet: 2,000 rows, 200 of 400 MB, \d+ MB/s"
        self.assertTrue(any(re.search(reading, line) for line in lines), lines)

    def test_quiet_and_pipes_show_no_line(self):
        lines, _ = self.lines_on_terminal("--quiet", "--num-workers", 2, *self.worker("rounds", "5", "0.3"))
        self.assertFalse([line for line in lines if "dmlc-submit" in line], lines)
        self.assertNotIn("round", self.ended_job(*self.worker("rounds", "5", "0.3"), workers=2).err)

    def progress(self, *command):
        """The progress that a job of two workers shows as JSON."""
        err = self.ended_job("--log-format", "json", *command, workers=2).err
        progress = [line for line in map(json.loads, err.splitlines()) if line["source"] == "progress"]
        self.assertTrue(progress, err)
        return progress

    def test_json_has_a_line_for_rounds(self):
        progress = self.progress(*self.worker("rounds", "10", "0.3"))
        self.assertEqual(progress[-1]["rounds"], 10)
        self.assertIn("rmse", progress[-1]["metrics"])

    def test_evaluations_of_stock_xgboost_are_understood(self):
        progress = self.progress(sys.executable, SOURCE / "tests/submit/monitor/watched_xgboost.py")
        self.assertIn("train-rmse", progress[-1]["metrics"])


class Hangs(Watched):
    def wait_and_end(self, process, text):
        said = self.wait_for_text(process.stderr, text)
        return said + self.end_and_read(process)

    def test_a_stopped_worker_is_named_in_time_and_when_it_goes_on(self):
        process = self.job("--hang-timeout", 12, *self.worker("stops"))
        self.wait_for_files("stopped")
        began = time.monotonic()
        said = self.wait_for_text(process.stderr, "has been stopped by a signal")
        self.assertLess(time.monotonic() - began, 12 + 2, "what a busy machine may add")
        self.assertRegex(said, r"worker 1 \(rank 1, host \S+, pid \d+\) has been stopped")
        os.kill(int(self.file("stopped").read_text()), signal.SIGCONT)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err.decode(), r"worker 1 \(rank 1, .*\) continues")

    def test_a_stopped_worker_of_stock_xgboost_is_named(self):
        process = self.job("--hang-timeout", 12, sys.executable, SOURCE / "tests/submit/monitor/watched_xgboost.py", "stops", workers=2)
        said = self.wait_and_end(process, "has been stopped by a signal")
        self.assertRegex(said, r"worker 1 \((rank 1, )?host")

    def test_who_holds_the_others_up_is_named_with_the_call_and_where_it_is(self):
        process = self.job("--hang-timeout", 4, "--dump-on-hang", "--log-dir", "logs", *self.worker("sleeps"),
                           environment={"PATH": path_with_py_spy()})  # fmt: skip
        said = self.wait_and_end(process, "sleeps_here")
        self.assertRegex(said, r"worker 1 \(rank 1, .*\) holds up 2 others: for \d s they have waited for it in "
                               r"allreduce of 8 double, sum \(call 6\); .* was last in allreduce of 8 double, sum \(call 5\)")
        self.assertIn("sleeps_here", self.file("logs/worker-1.stack").read_text())
        self.assertEqual(said.count("holds up"), 1, "once for as long as it lasts")

    def test_who_sleeps_is_not_said_to_compute(self):
        process = self.job("--hang-timeout", 8, *self.worker("sleeps"))
        said = self.wait_and_end(process, "holds up 2 others")
        self.assertRegex(said, r"\(call 6\); it (runs|uses no processor time|mostly sleeps \([\d.]+ cores\)), and was last in")

    def test_workers_that_print_are_not_idle(self):
        prints = "for i in $(seq 40); do echo $i; sleep 0.5; done"
        process = self.ended_job("--no-tracker", "--hang-timeout", 12, "sh", "-c", prints, workers=2)
        self.assertNotIn("warning", process.err)

    def test_dots_without_a_newline_and_prints_by_the_tracker_are_output(self):
        for how in ("writes-dots", "prints-by-tracker"):
            self.assertNotIn("holds up", self.ended_job("--hang-timeout", 3, *self.worker(how)).err, how)

    def test_workers_that_all_do_nothing_are_noticed_without_an_engine(self):
        process = self.job("--no-tracker", "--hang-timeout", 12, "sleep", "600", workers=2)
        said = self.wait_and_end(process, "no worker has used any processor time")
        self.assertRegex(said, r"the last one that did was worker [01]")

    def test_who_has_not_joined_is_named(self):
        process = self.job("--hang-timeout", 3, *self.worker("joins-late"))
        said = self.wait_and_end(process, "have waited for others")
        self.assertRegex(said, r"2 of 3|1 of 3|task 1|worker 1")

    def test_a_job_that_computes_for_long_is_left_alone(self):
        self.assertNotIn("warning", self.ended_job("--hang-timeout", 3, *self.worker("computes")).err)

    def test_nobody_looks_and_workers_tell_nothing_where_it_is_off(self):
        code = "import os, pathlib; pathlib.Path('told').write_text(str(os.environ.get('WARREN_REPORT_SECONDS')))"
        self.ended_job("--hang-timeout", 0, *python(code), workers=1)
        self.assertEqual(self.file("told").read_text(), "None")


class Afterwards(Watched):
    def test_a_long_job_says_who_made_the_others_wait(self):
        self.assertRegex(self.ended_job(*self.worker("late-rank", "36", "0.3")).err, r"rank 1 made the others wait [5-9]\d % of the time")

    def test_metrics_are_those_of_the_job_and_the_page_stays(self):
        (self.directory / "logs").mkdir()
        (self.directory / "logs/job.html").touch(0o644)  # left by an earlier job
        process = self.job("--metrics-port", 0, "--dashboard", "--log-dir", "logs", *self.worker("waits-for", "go-on"))
        said = self.wait_for_text(process.stderr, "token=")
        url = re.search(r"metrics: (\S+)", said).group(1)
        self.wait_for_files("all-called")

        def metrics():
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                return answer.read().decode()

        # Each rank has made 5 calls of 64 bytes.
        wait_for(lambda: set(re.findall(r'warren_collective_calls_total\{[^}]*rank="(\d)"[^}]*\} 5\b', metrics())) == {"0", "1", "2"}, LIMIT_S)
        text = metrics()
        self.assertRegex(text, r'warren_workers\{state="running"\} 3\b')
        self.assertRegex(text, r'warren_collective_bytes_total\{[^}]*collective="allreduce"[^}]*rank="0"[^}]*\} 320\b|'
                               r'warren_collective_bytes_total\{[^}]*rank="0"[^}]*collective="allreduce"[^}]*\} 320\b')
        self.file("go-on").touch()
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)
        path = self.file("logs/job.html")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600, "commands may name secrets")
        page = path.read_text()
        self.assertIn("watched_worker.py", page)
        self.assertIn("the last words of rank 1", page)

    def test_the_page_shows_what_the_tracker_prints_takes_stacks_and_cancels(self):
        code = ("import time; from warren import rabit; rabit.init()\n"
                "def waits_in_here(): time.sleep(600)\n"
                "rabit.tracker_print('[3]\\ttrain-rmse:0.25\\n[4]\\ttrain-rmse:0.125\\n')\n"
                "waits_in_here()")
        process = self.start("--num-workers", 1, "--dashboard", *python(code), environment={"PATH": path_with_py_spy()})
        said = self.wait_for_text(process.stderr, "token=")
        address, token = re.search(r"(http://\S+)/\?token=(\w+)", said).groups()

        def ask(what, method="GET"):
            request = urllib.request.Request(f"{address}/in/{token}/{what}", method=method)
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return json.loads(answer.read())

        wait_for(lambda: [line[3] for line in ask("logs")["lines"]][:2] == ["[3]\ttrain-rmse:0.25", "[4]\ttrain-rmse:0.125"], LIMIT_S)
        ask("stack?worker=0", "POST")
        wait_for(lambda: "waits_in_here" in self.stack_of(address, token), LIMIT_S)
        own, = ask("jobs")["jobs"]
        self.assertEqual((own["id"], own["held"]), (ask("jobs")["own"], True))
        ask("cancel", "POST")
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertIn("cancelled on its page", err.decode())
        self.assertNotEqual(process.returncode, 0)
        kept, = self.file("state/warren/jobs").glob("*.evaluations.json")
        self.assertEqual([one[::2] for one in json.loads(kept.read_text())["evaluations"]], [[3, {"train-rmse": 0.25}], [4, {"train-rmse": 0.125}]])

    @staticmethod
    def stack_of(address, token):
        with urllib.request.urlopen(f"{address}/in/{token}/events", timeout=LIMIT_S) as events:
            for line in events:
                if line.startswith(b"data: "):
                    return json.loads(line[6:])["workers"][0]["stack"]
        return ""

    def test_no_name_that_others_see_has_code_or_arguments_in_it(self):
        code = "import time; hidden = 'key'\nwith open('up', 'w') as up: up.write('1')\ntime.sleep(600)"
        process = self.job("--metrics-port", 0, "--dashboard", sys.executable, "-W", "ignore", "-c", code, "--secret=hidden", workers=1)
        said = self.wait_for_text(process.stderr, "token=")
        self.wait_for_files("up")
        with urllib.request.urlopen(re.search(r"metrics: (\S+)", said).group(1), timeout=LIMIT_S) as answer:
            metrics = answer.read().decode()
        self.assertIn(f'warren_job_info{{name="{pathlib.Path(sys.executable).name}",cluster="local"}} 1', metrics)
        self.assertNotIn("hidden", metrics)
        listed = self.listed_jobs()
        self.assertRegex(listed, rf"1 local +{pathlib.Path(sys.executable).name}\n")
        self.assertNotIn("hidden", listed)
        self.end_and_read(process)

    def test_a_job_is_called_by_its_jobname_on_every_cluster(self):
        process = self.submit("--num-workers", 1, "--jobname", "evening-run", "--no-tracker", "true", exit_code=0)
        self.assertNotIn("no effect", process.err)
        listed = self.listed_jobs()
        self.assertRegex(listed, r"1 local +evening-run\n")

    def test_the_history_says_who_failed(self):
        self.ended_job(*self.worker("fails"), exit_code=3)
        record, = (json.loads(path.read_text()) for path in self.file("state/warren/jobs").iterdir())
        self.assertEqual((record["how"], record["exit_code"], record["workers"]), ("failed", 3, 3))
        self.assertEqual((record["failed_by"]["worker"], record["failed_by"]["rank"]), ("worker 1", 1))
        self.assertIn("worker 1", record["story"])
        listed = self.listed_jobs()
        self.assertIn("worker 1", listed)

    def test_the_timeline_has_all_ranks_on_one_clock(self):
        self.ended_job("--timeline", "trace.json", *self.worker("late-rank", "20", "0.1"))
        events = json.loads(self.file("trace.json").read_text())
        calls = {rank: sorted((event["ts"], event["dur"]) for event in events if event["ph"] == "X" and event["pid"] == rank)
                 for rank in range(3)}
        self.assertEqual([len(calls[rank]) for rank in range(3)], [21] * 3, "no call is lost at the end")
        # No rank leaves a call before the last rank has entered it, within the error of the clocks.
        for number in range(21):
            came = max(calls[rank][number][0] for rank in range(3))
            left = min(sum(calls[rank][number]) for rank in range(3))
            self.assertLess(came - left, 20_000, "microseconds; the late rank is 0.1 s late")


if __name__ == "__main__":
    unittest.main()
