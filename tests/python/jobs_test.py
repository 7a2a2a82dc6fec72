"""warren jobs: its output for the files of past jobs, including broken files."""
import datetime
import fcntl
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from warren._tools import jobs as _jobs

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
#: A record as dmlc-submit writes it. tests/submit/monitor/history_test.cc compares the text of a record with the same file.
FAILED = json.loads((SOURCE / "tests/submit/monitor/history/failed.json").read_text())
NAME = "20261127T010203Z-4711.json"
NOW = datetime.datetime(2026, 11, 27, 4, 2, 3, tzinfo=datetime.timezone.utc)
END = ("seconds", "exit_code", "how", "story", "failed_by", "restarts", "page")


def job(held=None, host="elsewhere", **changes):
    values = {key: value for key, value in {**FAILED, **changes}.items() if value != "left out"}
    return _jobs.read(NAME, json.dumps(values), (host, "a boot of another machine"), lambda: held)


class Records(unittest.TestCase):
    def test_a_job_that_failed_says_by_whom(self):
        found = job()
        self.assertEqual((found.id, found.state, found.seconds), ("20261127T010203Z-4711", "failed", 83.25))
        self.assertIn("failed, code 3, worker 3 on node2", _jobs.table([found], NOW, 200))
        self.assertIn("3 hours ago  1:23", _jobs.table([found], NOW, 200))
        shown = _jobs.details(found, NOW)
        self.assertIn("command    python3 train.py 'a b'\n", shown)
        self.assertIn("page       /home/alice/logs/job.html\n", shown)

    def test_the_list_shows_names_without_arguments_and_code(self):
        listed = _jobs.table([job()], NOW, 200)
        self.assertRegex(listed.splitlines()[0], "NAME$")
        self.assertRegex(listed.splitlines()[1], r"8 ssh +train\.py$")
        for command, name in ((["/usr/bin/python3", "-c", "key='hidden'"], "python3"), ([], "job"), (["python -c hidden"], "python")):
            old = job(name="left out", command=command)
            self.assertRegex(_jobs.table([old], NOW, 200), rf"8 ssh +{name}\n$")
        self.assertIn("hidden", _jobs.details(old, NOW), "who asks for a job sees its command")

    def test_without_an_end_it_runs_or_was_killed_or_another_host_knows(self):
        without = {"locked": True, **{field: "left out" for field in END}}
        for held, host, state in ((True, "node1", "running"), (True, "elsewhere", "running"), (False, "node1", "killed"),
                                  (False, "elsewhere", "unknown"), (None, "node1", "unknown")):  # fmt: skip
            with self.subTest(held=held, host=host):
                self.assertEqual(job(held, host, **without).state, state)
        in_another_container = job(False, "elsewhere", **without, boot="a boot of another machine")
        self.assertEqual(in_another_container.state, "killed")
        self.assertEqual(job(False, "node1", **{**without, "locked": "left out"}).state, "unknown", "nobody locked it")
        self.assertIn("3:00:00  running", _jobs.table([job(True, "node1", **without)], NOW, 200))

    def test_a_broken_file_is_named_with_what_is_wrong(self):
        for changes, said in (({
                "format": 2
        }, "format 2.*newer"), ({
                "workers": "8"
        }, "'workers' is '8'"), ({
                "command": "left out"
        }, "no 'command'"), ({
                "began": "yesterday"
        }, "'yesterday'.*2026-11-27T01:02:03Z"), ({
                "how": "well"
        }, "'well'; expected one of succeeded"), ({
                "format": "left out"
        }, "no format")):
            with self.subTest(**changes), self.assertRaisesRegex(_jobs.BrokenRecord, f"^{NAME}: .*{said}"):
                job(**changes)
        for text in ("{", "[" * 100_000, '{"command":' * 100_000, "", "\0"):
            with self.assertRaisesRegex(_jobs.BrokenRecord, f"^{NAME}: .*not JSON"):
                _jobs.read(NAME, text, ("node1", ""), lambda: None)
        with self.assertRaisesRegex(_jobs.BrokenRecord, f"^{NAME}: 'seconds' is nan"):
            _jobs.read(NAME, json.dumps({**FAILED, "seconds": float("nan")}), ("node1", ""), lambda: None)
        for kept in (5, "abc", [1], [{}], {"a": 1}, [{"name": "n", "ask": None, "cancel": ["true"]}], [{"name": "n", "ask": [], "cancel": []}],
                     [{"name": "n", "ask": [], "cancel": [1]}]):
            with self.assertRaisesRegex(_jobs.BrokenRecord, "'kept_jobs' is"):
                job(kept_jobs=kept)
        for failed_by in ("worker 3", [1], 7):
            with self.assertRaisesRegex(_jobs.BrokenRecord, "'failed_by' is"):
                job(failed_by=failed_by)

    def test_a_terminal_obeys_nothing_of_a_record(self):
        for evil in ("\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\r", "\n", "\x7f", "\u202e", "\ud800", "\b"):
            found = job(name=f"a{evil}", command=["a", f"b{evil}"], directory=evil, story=evil, log_dir=evil, page=evil, cluster=evil,
                        host=f"node{evil}", failed_by={"worker": evil, "host": evil})  # fmt: skip
            with self.subTest(evil=evil):
                listed, shown = _jobs.table([found], NOW, 10_000), _jobs.details(found, NOW)
                self.assertNotIn(evil, listed.replace("\n", "", 2) if evil == "\n" else listed)
                self.assertEqual((listed.count("\n"), shown.count("\n")), (2, 13))
                self.assertNotIn(evil, shown.replace("\n", "") if evil == "\n" else shown)
                (listed + shown).encode()

    def test_a_job_is_found_by_its_beginning_or_its_pid(self):
        jobs = [job(), _jobs.Job("20261127T010204Z-47", NOW, "running", {"name": "a"})]
        self.assertEqual(_jobs.find(jobs, "4711"), jobs[0])
        self.assertEqual(_jobs.find(jobs, "20261127T010204"), jobs[1])
        with self.assertRaisesRegex(ValueError, "is ambiguous: it may be .*4711, .*47"):
            _jobs.find(jobs, "2026")
        with self.assertRaisesRegex(ValueError, "there is no job '9'"):
            _jobs.find(jobs, "9")
        longer = _jobs.Job(f"{jobs[1].id}1", NOW, "running", {})
        self.assertEqual(_jobs.find([longer, *jobs], jobs[1].id), jobs[1])

    def test_a_job_is_found_by_its_name_if_it_is_the_only_one_that_runs_or_the_newest(self):
        def named(second, state, name="tuning"):
            return _jobs.Job(f"20261127T01020{second}Z-{second}", NOW, state, {"name": name})

        jobs = [named(4, "failed"), named(3, "running", "other"), named(2, "running"), named(1, "succeeded")]
        self.assertEqual(_jobs.find(jobs, "tuning"), jobs[2])
        self.assertEqual(_jobs.find([jobs[0], jobs[3]], "tuning"), jobs[0])
        with self.assertRaisesRegex(ValueError, "'tuning' is ambiguous: it may be .*Z-2, .*Z-1"):
            _jobs.find([jobs[2], named(1, "running")], "tuning")

    def test_times_are_short(self):
        self.assertEqual([_jobs.ago(s) for s in (0, 1, 61, 7300, 90000, 4e7)],
                         ["now", "1 second ago", "1 minute ago", "2 hours ago", "1 day ago", "1 year ago"])
        self.assertEqual([_jobs.duration(s) for s in (None, 3.21, 61, 3723)], ["-", "3.2 s", "1:01", "1:02:03"])


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.state = self.folder / "warren/jobs"

    def run_it(self, *words, code=0):
        done = subprocess.run([sys.executable, "-m", "warren", "jobs", *map(str, words)],
                              text=True,
                              capture_output=True,
                              check=False,
                              timeout=60,
                              env={
                                  **os.environ, "XDG_STATE_HOME": str(self.folder)
                              })
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def keep(self, second, folder=None, **changes):
        folder = folder or self.state
        folder.mkdir(parents=True, exist_ok=True)
        name = f"20261127T0102{second:02}Z-{second}.json"
        (folder / name).write_text(json.dumps({**FAILED, "began": f"2026-11-27T01:02:{second:02}Z", **changes}))

    def test_no_job_is_no_trouble(self):
        self.assertEqual(self.run_it()[0], f"no jobs in {self.state}\n")

    def test_the_newest_come_first_and_only_so_many(self):
        for second in (1, 3, 2):
            self.keep(second)
        (self.state / "notes.txt").write_text("not ours")
        ids = [line.split()[0] for line in self.run_it("--last", 2)[0].splitlines()]
        self.assertEqual(ids, ["ID", "20261127T010203Z-3", "20261127T010202Z-2"])
        found = json.loads(self.run_it("--json")[0])
        self.assertEqual([(one["id"], one["state"], one["workers"]) for one in found],
                         [(f"20261127T01020{k}Z-{k}", "failed", 8) for k in (3, 2, 1)])

    def test_broken_files_hide_no_others(self):
        self.keep(1)
        self.keep(2, workers=None)
        out, err = self.run_it(code=1)
        self.assertIn("20261127T010201Z-1 ", out)
        self.assertIn(f"warren jobs: {self.state}/20261127T010202Z-2.json: 'workers' is None", err)

    def test_a_deep_or_evil_file_is_named_and_hides_no_others(self):
        self.keep(1)
        (self.state / "20261127T010202Z-2.json").write_text("[" * 100_000)
        self.keep(3, cluster=None)
        self.keep(4, began="\x1b[2J")
        out, err = self.run_it(code=1)
        self.assertIn("20261127T010201Z-1 ", out)
        self.assertIn("20261127T010202Z-2.json: it is not JSON", err)
        self.assertNotIn("\x1b", err)

    def test_what_is_no_file_is_named_and_waits_for_nobody(self):
        self.keep(1)
        os.mkfifo(self.state / "20261127T010202Z-2.json")
        (self.state / "20261127T010203Z-3.json").symlink_to("/dev/zero")
        (self.state / "20261127T010204Z-4.json").mkdir()
        with open(self.state / "20261127T010205Z-5.json", "wb") as large:
            large.truncate(1 << 34)
        out, err = self.run_it(code=1)
        self.assertIn("20261127T010201Z-1 ", out)
        for second, said in ((2, "not a file but a pipe"), (3, "not a file but a device"), (4, "not a file but a folder"), (5, "it has "
        "more than 16 MiB")):
            self.assertRegex(err, f"2026112.*-{second}.json.*{said}")

    def test_a_pid_of_another_container_is_no_sign_of_an_end(self):
        running = {field: value for field, value in FAILED.items() if field not in END}
        self.state.mkdir(parents=True)
        for second, locked in ((1, True), (2, False)):
            file = self.state / f"20261127T01020{second}Z-{second}.json"
            file.write_text(json.dumps({**running, "host": socket.gethostname(), "pid": 1 << 30, "locked": locked}))

        def states():
            return {one["id"][-1]: one["state"] for one in json.loads(self.run_it("--json")[0])}

        with open(self.state / "20261127T010201Z-1.json", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(states(), {"1": "running", "2": "unknown"})
        self.assertEqual(states(), {"1": "killed", "2": "unknown"})

    def test_a_job_that_ends_while_its_record_is_read_was_not_killed(self):
        values = {**{field: value for field, value in FAILED.items() if field not in END}, "host": socket.gethostname(), "locked": True}
        files = [self.folder / f"20261127T010203Z-{number}.json" for number in range(300)]
        read = [threading.Event() for _ in files]

        def run_jobs():
            for file, was_read in zip(files, read):
                aside = file.with_suffix(".new")
                aside.write_text(json.dumps(values))
                with open(aside, encoding="utf-8") as held:
                    fcntl.flock(held, fcntl.LOCK_EX)
                    aside.rename(file)
                    was_read.wait()
                    aside.write_text(json.dumps({**FAILED, **values}))
                    aside.rename(file)

        jobs = threading.Thread(target=run_jobs)
        jobs.start()
        self.addCleanup(jobs.join)
        self.addCleanup(lambda: [was_read.set() for was_read in read])
        for file, was_read in zip(files, read):
            states = []
            while "failed" not in states:
                if file.exists():
                    states.append(_jobs.read_file(file).state)
                    was_read.set()
            self.assertNotIn("killed", states)

    def test_a_log_directory_has_jobs_of_its_own(self):
        self.keep(5, self.folder / "logs/jobs", story="the disk was full")
        self.assertIn("the disk was full", self.run_it("--log-dir", self.folder / "logs", "5")[0])
        self.assertIn("there is no job '5'", self.run_it("5", code=1)[1])


if __name__ == "__main__":
    unittest.main()
