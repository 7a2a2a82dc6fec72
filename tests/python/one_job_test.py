"""warren status, logs, wait and cancel, with jobs of dmlc-submit and with records that the tests write."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from warren._system import locks as _locks
from warren._tools import cancel as _cancel
from warren._tools import jobs as _jobs
from warren._tools import logs as _logs
from warren._tools import one_job as _one_job
from warren_testing import BIN, wait_for

LIMIT_S = 60
#: A shell script: prints a line, and another once the file "go" exists; then exits with code 3.
WORKER = 'echo "began $DMLC_TASK_ID"; until [ -e go ]; do sleep 0.02; done; echo "went on $DMLC_TASK_ID"; exit 3'
#: A program that stands in for a launcher: keeps its record open, locked or not, until SIGTERM, and records its end half a second later.
HOLDER = """
import fcntl, json, signal, sys, time
record = open(sys.argv[1])
if sys.argv[2] == "locked":
    fcntl.flock(record, fcntl.LOCK_EX)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("ready", flush=True)
signal.sigwait([signal.SIGTERM])
values = json.loads(open(sys.argv[1]).read())
record.close()
time.sleep(0.5)
end = {"seconds": 1.5, "exit_code": 143, "how": "interrupted", "story": "", "restarts": 0}
open(sys.argv[1], "w").write(json.dumps({**values, **end}))
"""


class OneJob(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="warren-one-job-")))
        self.records = self.folder / "warren/jobs"
        self.records.mkdir(parents=True)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder)}

    def submit(self, *words):
        """Starts a job with --detach; returns its ID."""
        done = subprocess.run([BIN / "dmlc-submit", "--detach", "--quiet", "--num-workers", "2", *map(str, words)], cwd=self.folder,
                              env=self.environment, text=True, capture_output=True, check=False, timeout=LIMIT_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        job = done.stdout.strip()
        self.addCleanup(self.kill, int(job.partition("-")[2]))
        return job

    def kill(self, pid):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if str(self.folder) in os.readlink(f"/proc/{pid}/cwd"):
                os.kill(pid, signal.SIGKILL)

    def begin(self, *words):
        return subprocess.Popen([sys.executable, "-m", "warren", *map(str, words)], env=self.environment, cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip

    def warren(self, *words, code=0):
        process = self.begin(*words)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, code, (words, out, err))
        return out + err

    def keep(self, job="20261127T010203Z-4711", **changes):
        """Writes the record of a job that has not ended; returns the file."""
        values = {"format": 1, "name": "train.py", "command": ["train.py"], "directory": "/", "host": socket.gethostname(),
                  "pid": int(job.partition("-")[2]), "boot": _locks.boot(), "cluster": "local", "workers": 2,
                  "began": "2026-11-27T01:02:03Z", "log_dir": None, "locked": True, **changes}  # fmt: skip
        file = self.records / f"{job}.json"
        file.write_text(json.dumps(values))
        return file

    def go(self):
        (self.folder / "go").touch()

    def wait_for_lines(self, job, count):
        log = self.records / job / "launcher.log"
        wait_for(lambda: len(log.read_text().splitlines()) >= count, LIMIT_S, f"{count} lines")

    def hold(self, job, lock, **changes):
        """Writes a job's record and starts a process that holds it open, like a launcher. Returns the process and the record's file."""
        file = self.keep(job, **changes)
        process = subprocess.Popen([sys.executable, "-c", HOLDER, file, lock], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        return process, file


class OfDetachedJobs(OneJob):
    def test_a_job_is_watched_to_its_end(self):
        job = self.submit("--jobname", "tuning", "--dashboard", "sh", "-c", WORKER)
        self.wait_for_lines(job, 3)
        shown = self.warren("status", "tuning")
        self.assertRegex(shown, rf"^job        {job} \(tuning\)\nstate      running for \d.* s\nbegan      .*\nworkers    2 on local\n")
        self.assertRegex(shown, r"(?m)^page       http://127.0.0.1:\d+/\?token=\w+\n")
        self.assertIn("\noutput, last lines:\n", shown)
        self.assertIn("\n  [1] began 1\n", shown)
        self.assertEqual(self.warren("logs", job, "--rank", 1), "began 1\n")
        followed, waiting = self.begin("logs", "tuning", "--follow"), self.begin("wait", job.partition("-")[2])
        first = [followed.stdout.readline() for _ in range(3)]
        self.assertEqual(sorted(first)[:2], ["[0] began 0\n", "[1] began 1\n"])
        self.assertIsNone(waiting.poll())
        self.go()
        out, err = waiting.communicate(timeout=LIMIT_S)
        self.assertEqual(waiting.returncode, 3, err)
        self.assertRegex(out, rf"^job {job} failed with exit code 3 after [\d.]+ s: worker . .* exited with code 3")
        out, err = followed.communicate(timeout=LIMIT_S)
        self.assertEqual((followed.returncode, err), (0, ""))
        self.assertEqual("".join(first) + out, self.warren("logs", job))
        self.assertRegex(out, r"dmlc-submit: error: worker . .* exited with code 3")
        shown = self.warren("status", job, code=1)
        self.assertIn("state      failed with exit code 3 after", shown)
        self.assertIn(f"page       {self.records / job}/job.html\n", shown)
        found = json.loads(self.warren("status", job, "--json", code=1))
        self.assertEqual((found["id"], found["state"], found["exit_code"]), (job, "failed", 3))
        self.assertIn("failed with exit code 3", found["outcome"])
        self.assertRegex(found["output"][-1], "exited with code 3")
        self.assertIn("had already ended: it failed with exit code 3", self.warren("cancel", job))
        self.assertIn(f"{job} ", self.warren("jobs"))

    def test_a_job_that_succeeded(self):
        job = self.submit("true")
        self.assertRegex(self.warren("wait", job), rf"^job {job} succeeded after [\d.]+ s\n$")
        self.assertIn("state      succeeded after", self.warren("status", job))
        self.assertTrue(self.warren("status", job).endswith("\noutput is empty\n"))

    def test_cancel_ends_a_job_and_waits_for_it(self):
        job = self.submit("sh", "-c", WORKER)
        self.wait_for_lines(job, 2)
        self.assertRegex(self.warren("cancel", job), rf"^job {job} ended with exit code 143 after [\d.]+ s: the job was interrupted by SIG")
        with contextlib.suppress(FileNotFoundError):
            state = pathlib.Path(f"/proc/{job.partition('-')[2]}/stat").read_text().rpartition(")")[2].split()[0]
            self.assertIn(state, "ZX", "its launcher has exited")
        self.assertRegex(self.warren("wait", job, code=143), "interrupted by SIGTERM; its 2 processes were stopped")
        job = self.submit("sh", "-c", WORKER)
        self.assertIn(f"sent SIGTERM to dmlc-submit (pid {job.partition('-')[2]})", self.warren("cancel", job, "--no-wait"))
        self.warren("wait", job, code=143)

    def test_a_launcher_that_was_killed(self):
        job = self.submit("sh", "-c", WORKER)
        self.wait_for_lines(job, 2)
        waiting = self.begin("wait", job)
        self.kill(int(job.partition("-")[2]))
        said = f"job {job} did not end by itself: the launcher (dmlc-submit) was killed\n"
        out, err = waiting.communicate(timeout=LIMIT_S)
        self.assertEqual((waiting.returncode, out, err), (1, "", f"warren wait: {said}"))
        self.assertEqual(self.warren("wait", job, code=1), f"warren wait: {said}")
        self.assertEqual(self.warren("cancel", job), f"job {job} had already ended: it {said.partition(job + ' ')[2]}")
        self.assertTrue(self.warren("logs", job, "-f").endswith(f"\nwarren logs: {said}"))
        self.assertIn("state      did not end by itself: the launcher (dmlc-submit) was killed\n", self.warren("status", job, code=1))
        self.assertIn("ended      killed: the launcher (dmlc-submit) was killed\n", self.warren("jobs", job))

    def test_a_log_folder_of_several_jobs(self):
        jobs = []
        for number in range(3):
            jobs.append(self.submit("--log-dir", "logs", "echo", f"job {number}"))
            self.warren("wait", jobs[-1])
        for job, code, said in zip(jobs, (1, 0, 0), ("were replaced by those of later jobs", "job 1\n", "job 2\n")):
            self.assertIn(said, self.warren("logs", job, "--rank", 0, code=code))
        self.assertIn("[0] job 1\n", self.warren("logs", jobs[1]))
        self.assertIn("job 2", self.warren("logs", jobs[2], "--log-dir", "logs"))


class OfOtherJobs(OneJob):
    def test_output_that_was_not_kept(self):
        self.keep()
        said = "the output of job 20261127T010203Z-4711 was not kept: start jobs with --detach, or with --log-dir DIR"
        self.assertEqual(self.warren("logs", "4711", code=1), f"warren logs: {said}\n")
        self.assertTrue(self.warren("status", "4711", code=1).endswith(f"\n{said}\n"))

    def test_a_job_with_a_log_folder_that_was_not_detached(self):
        self.keep(log_dir=str(self.folder))
        (self.folder / "worker-0.log").write_text("\x1b[2Ja line\n")
        (self.folder / "worker-1.log").write_text("of task 1\n")
        (self.folder / "rank-7.log").symlink_to("worker-1.log")
        self.assertIn("--rank R shows that of one worker", self.warren("logs", "4711", code=1))
        self.assertTrue(self.warren("status", "4711", code=1).endswith("\noutput of rank 0, last lines:\n  \\x1b[2Ja line\n"))
        self.assertIn("of task 1\n", self.warren("logs", "4711", "--rank", 7))
        self.assertRegex(self.warren("logs", "4711", "--rank", 2, code=1), "it has 2 workers; there is no file '.*/worker-2.log'\n")
        (self.folder / "worker-1.log").unlink()
        self.assertRegex(self.warren("logs", "4711", "--rank", 1, code=1), "Z-4711: there is no file '.*/worker-1.log'\n")
        self.keep(log_dir=str(self.folder), host="node1")
        self.assertIn(", which may be on node1 only\n", self.warren("logs", "4711", "--rank", 1, code=1))

    def test_after_a_restart_of_the_machine_each_command_says_so(self):
        self.keep(boot="the boot before", log_dir=str(self.folder))
        (self.folder / "worker-0.log").write_text("a line\n")
        said = "did not end by itself: this machine was restarted since\n"
        for words, code in ((("status", ), 1), (("wait", ), 1), (("cancel", ), 0), (("logs", "--rank", 0), 0)):
            self.assertIn(said, self.warren(*words, "4711", code=code))
        self.assertIn("killed: this machine was restarted since", self.warren("jobs", "4711"))

    def test_cancel_sends_no_signal_to_a_process_that_is_not_the_launcher(self):
        bystander = subprocess.Popen(["sleep", "600"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        holder, _ = self.hold(f"20261127T010203Z-{bystander.pid}", "locked")
        said = self.warren("cancel", bystander.pid, code=1)
        self.assertIn(f"pid {bystander.pid} is not its dmlc-submit here: it runs in another container of this machine", said)
        unlocked = self.keep(f"20261127T010204Z-{bystander.pid}", locked=False)
        said = self.warren("cancel", unlocked.stem, code=1)
        self.assertIn(f"pid {bystander.pid} is not its dmlc-submit here: it was killed, or runs in another container", said)
        self.assertEqual((bystander.poll(), holder.poll()), (None, None))
        nobody = 1 << 30
        self.hold(f"20261127T010205Z-{nobody}", "locked")
        self.assertIn(f"pid {nobody} is not its dmlc-submit here", self.warren("cancel", nobody, code=1))

    def test_cancel_with_an_empty_name_ends_no_job(self):
        holder, file = self.hold("20261127T010203Z-1", "locked")
        file.write_text(file.read_text().replace('"pid": 1,', f'"pid": {holder.pid},'))
        self.assertIn("the name of the job is empty; `warren jobs` lists the jobs", self.warren("cancel", "", code=1))
        self.assertIsNone(holder.poll())

    def test_cancel_finds_the_launcher_by_its_open_record(self):
        for second, lock in enumerate(("locked", "not locked")):
            holder, file = self.hold(f"20261127T01020{second}Z-1", lock, locked=lock == "locked")
            file.write_text(file.read_text().replace('"pid": 1,', f'"pid": {holder.pid},'))
            self.assertEqual(self.warren("cancel", file.stem), f"job {file.stem} ended with exit code 143 after 1.5 s\n")
            self.assertEqual(holder.wait(LIMIT_S), 0)

    def test_wait_needs_only_the_lock(self):
        holder, file = self.hold("20261127T010203Z-1", "locked")  # as in another container: pid 1 is another process here
        waiting = self.begin("wait", file.stem)

        def waits():
            blocked = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines() if "->" in line]
            return waiting.poll() is not None or any(str(waiting.pid) in words for words in blocked)

        wait_for(waits, LIMIT_S, "the wait for the lock")
        holder.kill()
        out, err = waiting.communicate(timeout=LIMIT_S)
        self.assertEqual((waiting.returncode, out), (1, ""))
        self.assertIn("did not end by itself: the launcher (dmlc-submit) was killed", err)

    def test_a_job_of_another_host_is_cancelled_there(self):
        for second, locked in enumerate(("locked", "not locked")):
            _, file = self.hold(f"20261127T01020{second}Z-1", locked, host="node1", boot="another", locked=locked == "locked")
            said = self.warren("cancel", file.stem, code=1)
            self.assertEqual(said, f"warren cancel: job {file.stem} was started on node1; type there: warren cancel {file.stem}\n")
        self.assertIn("is in an unknown state: it was started on node1; give the command there", self.warren("wait", file.stem, code=1))
        self.assertIn("is in an unknown state: it was started on node1", self.warren("status", file.stem, code=1))

    def test_a_job_that_ends_before_it_is_cancelled(self):
        holder, file = self.hold("20261127T010203Z-1", "locked")
        one = _one_job.OneJob(_jobs.read_file(file), file)
        self.assertEqual(one.job.state, "running")
        holder.kill()
        holder.wait()
        with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stdout(null):
            self.assertEqual(_cancel._cancel(one, argparse.Namespace(no_wait=False)), 0)  # pylint: disable=protected-access

    def test_who_gives_no_job_is_told(self):
        for command in ("status", "logs", "wait", "cancel"):
            self.assertIn(f"warren {command}: there is no job 'x'; `warren jobs` lists", self.warren(command, "x", code=1))
        (self.records / "20261127T010203Z-1.json").write_text("{")
        self.assertIn("Z-1.json: it is not JSON", self.warren("status", "20261127T010203Z-1", code=1))

    def test_what_a_cluster_keeps_of_a_killed_job_is_asked_and_ended(self):
        kept = [{"name": "job 12 of a queue", "ask": ["sh", "-c", "echo it waits; pwd"], "cancel": ["sh", "-c", "touch ended; echo bye"]}]
        file = self.keep(directory=str(self.folder), kept_jobs=kept)
        job = file.stem
        self.assertIn(f"job 12 of a queue: it waits {self.folder}", self.warren("status", job, code=1))
        self.assertIn("ended job 12 of a queue: bye", self.warren("cancel", job))
        self.assertTrue((self.folder / "ended").exists())

    def test_commands_of_records_in_other_folders_or_of_other_hosts_are_shown_and_not_run(self):
        kept = [{"name": "job 12 of a queue", "ask": ["touch", "asked"], "cancel": ["touch", "ended"]}]
        file = self.keep(directory=str(self.folder), kept_jobs=kept)
        copy = self.folder / "logs/jobs" / file.name
        copy.parent.mkdir(parents=True)
        copy.write_text(file.read_text())
        where = ("--log-dir", self.folder / "logs", file.stem)
        self.assertIn("`touch asked` asks about it, `touch ended` ends it", self.warren("status", *where, code=1))
        self.assertIn("`touch ended` ends it", self.warren("cancel", *where, code=1))
        self.keep(directory=str(self.folder), kept_jobs=kept, host="a-node-that-died", boot="another")
        self.assertIn("`touch asked` asks about it, `touch ended` ends it", self.warren("status", file.stem, code=1))
        self.assertIn("type there: warren cancel", self.warren("cancel", file.stem, code=1))
        file.chmod(0o620)
        self.assertFalse((self.folder / "asked").exists() or (self.folder / "ended").exists())

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        self.keep(log_dir=str(self.folder))
        (self.folder / "worker-0.log").write_text("a line\n" * 100_000)
        done = subprocess.run(["sh", "-c", f"{sys.executable} -m warren logs 4711 --rank 0 | head -1"], env=self.environment, text=True,
                              capture_output=True, check=True, timeout=LIMIT_S)  # fmt: skip
        self.assertEqual((done.stdout, done.stderr), ("a line\n", ""))


class Following(unittest.TestCase):
    def setUp(self):
        self.file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="warren-tail-"))) / "launcher.log"
        self.file.write_text("one\n")
        self.tail = _logs.Tail(self.file)
        self.addCleanup(self.tail.close)

    def new(self):
        return b"".join(self.tail.new())

    def test_each_byte_comes_once(self):
        self.assertEqual(self.new(), b"one\n")
        self.assertEqual(self.new(), b"")
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("tw")
            file.flush()
            self.assertEqual(self.new(), b"tw")
            file.write("o\n")
        self.assertEqual(self.new(), b"o\n")

    def test_a_truncated_file_begins_again(self):
        self.new()
        self.file.write_text("2\n")
        self.assertEqual(self.new(), b"2\n")

    def test_a_file_that_was_moved_is_read_to_its_end_and_then_its_successor(self):
        self.new()
        moved = self.file.rename(self.file.with_suffix(".1"))
        with open(moved, "a", encoding="utf-8") as file:
            file.write("last\n")
        self.assertEqual(self.new(), b"last\n")
        self.file.write_text("first\n")
        self.assertEqual(self.new(), b"first\n")

    def test_last_lines_are_few_and_cut(self):
        self.file.write_text("".join(f"{number}\n" for number in range(100_000)))
        self.assertEqual(_logs.last_lines(self.file, 2), ["99998", "99999"])
        self.file.write_text("x" * 1_000_000 + "end")
        self.assertEqual(len(_logs.last_lines(self.file, 10)[0]), 1 << 16)
        self.assertTrue(_logs.last_lines(self.file, 10)[0].endswith("end"))


if __name__ == "__main__":
    unittest.main()
