"""rabit-tracker as a program: its output, its exit, and workers that join, leave and return."""

import contextlib
import os
import pathlib
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from warren_testing import BIN, ClassicWorker, Tracker, local_tracker, package_environment, start_all, threads, wait_for


def run(*options, **settings):
    """Runs rabit-tracker, which must exit. Returns the ended process."""
    return subprocess.run([BIN / "rabit-tracker", *map(str, options)], capture_output=True, text=True, check=False, timeout=30, **settings)


def refused(*options):
    return run("--host-ip", "127.0.0.1", "--port", 0, *options)


def workers_for(tracker, count):
    return [ClassicWorker(tracker.address, task) for task in range(count)]


def member_environment(tracker, task):
    return package_environment(**tracker.env, DMLC_TASK_ID=str(task))


with_librabit = unittest.skipUnless((BIN.parent / "lib/librabit.so").exists(), "SKIPPED: librabit is not built")


class Program(unittest.TestCase):
    def test_it_prints_the_environment_block_and_nothing_else_on_stdout(self):
        with local_tracker(1, "--num-servers", 2) as tracker:
            self.assertEqual(tracker.block[0], "DMLC_TRACKER_ENV_START")
            self.assertEqual(tracker.block[-1], "DMLC_TRACKER_ENV_END")
            self.assertEqual(tracker.env, {"DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "2", "DMLC_TRACKER_URI": "127.0.0.1",
                                           "DMLC_TRACKER_PORT": str(tracker.port), "DMLC_JOB_TOKEN": tracker.env["DMLC_JOB_TOKEN"]})
            self.assertRegex(tracker.env["DMLC_JOB_TOKEN"], "^[0-9a-f]{64}$")
            (worker,) = start_all(workers_for(tracker, 1))
            worker.print("hello from the worker")
            worker.shutdown()
            out, log = tracker.process.communicate(timeout=30)
            self.assertEqual(out, "")
            self.assertIn("hello from the worker\n", log)
            self.assertEqual(tracker.process.returncode, 0)

    @with_librabit
    def test_it_serves_workers_that_may_be_lost(self):
        program = ("import time; from warren._launch.membership import Membership; member = Membership()\n"
                   "while member.next_generation(lambda: True).size > 1:\n"
                   "    print('met', flush=True)\n"
                   "    while not member.wants_change(): time.sleep(.02)\n"
                   "    member.come_again()\n"
                   "member.done(); member.close()\n")
        with local_tracker("1:2", "--replace-within", 0) as tracker:
            self.assertEqual(tracker.env["WARREN_ELASTIC"], "1:2")
            first, second = (subprocess.Popen([sys.executable, "-c", program], env=member_environment(tracker, task), text=True,
                                              stdout=subprocess.PIPE) for task in range(2))
            self.assertEqual(second.stdout.readline(), "met\n")
            second.kill()
            second.communicate()
            first.communicate(timeout=30)
            self.assertEqual(first.returncode, 0)
            _, log = tracker.process.communicate(timeout=30)
            self.assertEqual(tracker.process.returncode, 0, log)
            self.assertIn("generation 2 begins with 1 worker (task 0), ", log)

    @with_librabit
    def test_it_stays_to_tell_workers_that_come_too_late(self):
        program = ("from warren._launch.membership import JobIsOver, Membership; member = Membership()\n"
                   "try: member.next_generation(lambda: True); member.done()\n"
                   "except JobIsOver: print('over')\n"
                   "member.close()\n")
        with local_tracker("1:1", "--linger", 600) as tracker:
            said = [subprocess.run([sys.executable, "-c", program], env=member_environment(tracker, 0), capture_output=True, text=True,
                                   timeout=30, check=True).stdout for _ in range(2)]  # fmt: skip
            self.assertEqual(said, ["", "over\n"])
            self.assertIsNone(tracker.process.poll())
            tracker.process.terminate()
            _, log = tracker.process.communicate(timeout=30)
            self.assertEqual(tracker.process.returncode, 0, log)
            self.assertRegex(log, "(?s)tracker: the work is done\n.*tracker: all workers have finished\n")
        with local_tracker("1:1", "--linger", 0.01) as tracker:
            subprocess.run([sys.executable, "-c", program], env=member_environment(tracker, 0), check=True, timeout=30)
            self.assertEqual(tracker.finish()[0], 0)

    def test_a_state_file_of_a_job_that_is_not_elastic_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            state = pathlib.Path(folder) / "state"
            with local_tracker(2, "--state", state) as tracker:
                tracker.process.kill()
                tracker.process.wait()
            done = run("--num-workers", "1:2", "--state", state)
        self.assertEqual(done.returncode, 1)
        self.assertIn("belongs to a job of 2 workers, not 1:2", done.stderr)

    def test_it_exits_0_when_all_workers_have_shut_down(self):
        for count in (1, 2, 3, 4, 7, 16):
            with local_tracker(count) as tracker:
                workers = start_all(workers_for(tracker, count))
                self.assertEqual(sorted(worker.rank for worker in workers), list(range(count)))
                for worker in workers:
                    neighbors = {*worker.tree, worker.ring_prev, worker.ring_next} - {-1}
                    self.assertEqual(set(worker.links), neighbors)
                    self.assertEqual(worker.ring_next, (worker.rank + 1) % count if count > 1 else -1)
                    self.assertIn(worker.parent, [*worker.tree, -1])
                for worker in workers[:-1]:
                    worker.shutdown()
                self.assertIsNone(tracker.process.poll())
                workers[-1].shutdown()
                self.assertEqual(tracker.finish()[0], 0)

    def test_ranks_follow_task_numbers_on_one_host(self):
        with local_tracker(12, "--sortby", "task") as tracker:
            for worker in start_all(workers_for(tracker, 12)):
                self.assertEqual(worker.rank, int(worker.task_id))

    def test_it_serves_ipv6(self):
        with Tracker("--num-workers", 3, "--host-ip", "::1", "--port", 0) as tracker:
            workers = start_all(workers_for(tracker, 3))
            for worker in workers:
                worker.shutdown()
            self.assertEqual(tracker.finish()[0], 0)

    def test_options_are_taken_in_the_forms_of_argparse(self):
        for words in (["-n2"], ["-np", "2"], ["--num-w=2"], ["-n=2"]):
            done = run(*words, "--host-i", "[::1]", "--port=0", "--until-stdin", input="")
            self.assertIn("DMLC_NUM_WORKER=2\n", done.stdout, done.stderr)
            self.assertIn("DMLC_TRACKER_URI=::1\n", done.stdout)
        shown = [run(word) for word in ("-h", "--help")]
        self.assertEqual({(done.returncode, done.stdout) for done in shown}, {(0, shown[0].stdout)})
        self.assertIn("has a port; give the address alone, and the port with --port", run("-n2", "--host-ip", "127.0.0.1:9091").stderr)

    def test_it_names_the_missing_workers_at_the_timeout_and_exits_1(self):
        with local_tracker(3, "--timeout", "1.5") as tracker:
            wires = [worker.hello("start") for worker in workers_for(tracker, 3)[:2]]
            code, log = tracker.finish()
            self.assertEqual(code, 1)
            self.assertIn("workers are missing after 1.5 s: 2 of 3 workers joined: task 0 (127.0.0.1), task 1", log)
            self.assertIn("missing: task 2", log)
            del wires

    def test_it_tells_bad_options_from_each_other_and_exits_2(self):
        for options, complaint in (
            ([], "--num-workers is required"),
            (["--num-workers", "0"], "--num-workers"),
            (["--num-workers", "many"], "--num-workers"),
            (["--num-workers", "3:2"], "3:2 is not a number of workers from 1 to 131072, nor MIN:MAX"),
            (["--num-workers", "2", "--sortby", "age"], "--sortby"),
            (["--num-workers", "2", "--port", "99999"], "--port"),
            (["--num-workers", "2", "--no-such-option"], "--no-such-option"),
            (["--num-workers", "1:2", "--replace-within", "1e300"], "--replace-within"),
            (["--num-workers", "2", "--replace-within", "5"], "--replace-within needs --num-workers MIN:MAX"),
            (["--num-workers", "2", "--linger", "0"], "--linger needs --num-workers MIN:MAX"),
            (["--num-workers", "2", "--port", "9100", "--port-end", "9000"], "--port-end 9000 is below --port 9100"),
            (["--num-workers", "2", "--port-end", "9000"], "--port-end 9000 is below --port 9091"),
            (["--num-workers", "2", "--admit-host", "127.0.0.1", "--admit", "any"], "--admit-host needs --admit hosts"),
            (["--num-wrokers", "2"], "unknown option '--num-wrokers'; did you mean --num-workers"),
            (["--num", "2"], "ambiguous option '--num': it could be --num-workers, --num-servers"),
            (["-n"], "--num-workers needs a value"),
        ):
            done = run(*options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(complaint, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_a_burst_of_all_workers_waits_in_the_queue_and_none_is_turned_away(self):
        burst = 2 * int(pathlib.Path("/proc/sys/net/core/somaxconn").read_text())
        if burst > resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200:
            self.skipTest(f"SKIPPED: this process may not open {burst} files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        with local_tracker(burst) as tracker, contextlib.ExitStack() as open_ones:
            tracker.process.send_signal(signal.SIGSTOP)
            waiting = select.poll()
            for _ in range(burst):
                one = open_ones.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(tracker.address)
                waiting.register(one, select.POLLOUT)
            connected, end = 0, time.monotonic() + 5  # connections that do not fit into the queue would stay pending
            while connected < burst and time.monotonic() < end:
                for descriptor, _ in waiting.poll(1000):
                    waiting.unregister(descriptor)
                    connected += 1
            self.assertEqual(connected, burst)

    def test_a_tracker_with_many_workers_shares_its_port_with_no_other(self):
        many = 20 * int(pathlib.Path("/proc/sys/net/core/somaxconn").read_text())
        with local_tracker(many) as tracker:
            for workers in (1, many):
                second = run("--num-workers", workers, "--host-ip", "127.0.0.1", "--port", tracker.port, "--port-end", tracker.port)
                self.assertEqual(second.returncode, 1)
                self.assertIn("Address already in use", second.stderr)

    def test_it_says_which_ports_were_taken_and_exits_1(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = run("--num-workers", 1, "--host-ip", "127.0.0.1", "--port", port, "--port-end", port)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot listen on 127.0.0.1, port {port}", done.stderr)

    def test_it_takes_the_next_free_port(self):
        with local_tracker(1) as first:
            end = min(first.port + 50, 65535)
            with Tracker("--num-workers", 1, "--host-ip", "127.0.0.1", "--port", first.port, "--port-end", end) as second:
                self.assertGreater(second.port, first.port)

    def test_the_files_with_the_token_are_for_their_owner(self):
        with tempfile.TemporaryDirectory() as folder:
            state, token = pathlib.Path(folder) / "state", pathlib.Path(folder) / "token"
            for path in (state, token):
                path.touch(0o666)
                path.chmod(0o666)
            token.write_text("ab" * 32)
            with local_tracker(1, "--state", state, "--token-file", token) as tracker:
                self.assertEqual(state.stat().st_mode & 0o777, 0o600)
                os.kill(tracker.process.pid, signal.SIGTERM)
                _, log = tracker.finish()
            self.assertIn("other users may read or write it (mode 666)", log)
        done = run("--num-workers", 1, "--token-file", "")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("--token-file: the file name is empty", done.stderr)

    def test_a_full_disk_of_the_state_does_not_end_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            state = pathlib.Path(folder) / "state"
            with local_tracker(2, "--state", state) as tracker:
                size = state.stat().st_size + 3  # the limit for all files that the tracker writes from now on
                resource.prlimit(tracker.process.pid, resource.RLIMIT_FSIZE, (size, size))
                for worker in start_all(workers_for(tracker, 2)):
                    worker.shutdown()
                code, log = tracker.finish()
            self.assertEqual(code, 0, log)
            self.assertEqual(log.count(f"the state file '{state}': File too large; the job goes on"), 1, log)

    def test_a_log_on_a_full_disk_does_not_end_the_job(self):
        with open("/dev/full", "wb") as full, local_tracker(1, stderr=full) as tracker:
            (worker,) = start_all(workers_for(tracker, 1))
            worker.print("hello from the worker")
            worker.shutdown()
            self.assertEqual(tracker.finish()[0], 0)

    def test_it_looks_after_a_minute_whether_the_host_of_a_waiting_worker_is_still_there(self):
        def timer():
            """The timer of the tracker's end of the worker's connection, and the hundredths of a second until it expires."""
            for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
                _, local_end, _, state, _, timer, *_ = line.split()
                if local_end.endswith(f":{tracker.port:04X}") and state == "01":
                    return tuple(int(part, 16) for part in timer.split(":"))

        keepalive = 2
        with local_tracker(2) as tracker:
            wire = workers_for(tracker, 1)[0].hello("start")
            wait_for(lambda: timer()[0] == keepalive, what="the keepalive timer")
            self.assertLessEqual(timer()[1], 60_00)
            del wire

    def test_a_file_that_is_no_state_file_is_left_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            notes, pipe = pathlib.Path(folder) / "notes", pathlib.Path(folder) / "pipe"
            notes.write_text("call Alice\n")
            os.mkfifo(pipe)
            for path, complaint in ((notes, "it is not a tracker's state file"), (pipe, "it is not a regular file")):
                path.chmod(0o644)
                done = refused("--num-workers", 1, "--state", path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"the state file '{path}': {complaint}", done.stderr)
                self.assertEqual(path.stat().st_mode & 0o777, 0o644)
            self.assertEqual(notes.read_text(), "call Alice\n")

    def test_a_state_file_of_a_job_with_another_token_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            state, own, other = (pathlib.Path(folder) / name for name in ("state", "own", "other"))
            own.write_text("ab" * 32)
            other.write_text("cd" * 32)
            for token in (own, other):
                token.chmod(0o600)
            with local_tracker(1, "--state", state, "--token-file", own) as tracker:
                tracker.process.kill()
                tracker.process.wait()
            done = refused("--num-workers", 1, "--state", state, "--token-file", other)
            self.assertEqual(done.returncode, 1)
            self.assertIn("belongs to a job with another token than the one from --token-file; give the token of that job", done.stderr)
            with local_tracker(1, "--state", state, "--token-file", own) as tracker:
                (worker,) = start_all([ClassicWorker(tracker.address, 0, token="ab" * 32)])
                worker.shutdown()
                self.assertEqual(tracker.finish()[0], 0)

    def test_it_stops_on_sigterm_and_says_who_was_there(self):
        with local_tracker(2) as tracker:
            wire = workers_for(tracker, 1)[0].hello("start")
            for line in tracker.process.stderr:
                if "task 0 joined" in line:
                    break
            os.kill(tracker.process.pid, signal.SIGTERM)
            code, log = tracker.finish()
            self.assertEqual(code, 128 + signal.SIGTERM)
            self.assertIn("1 of 2 workers joined: task 0", log)
            del wire


class ComingBack(unittest.TestCase):
    def test_a_restarted_task_gets_its_rank_and_its_links_back(self):
        with local_tracker(5) as tracker:
            workers = start_all(workers_for(tracker, 5))
            dead = next(worker for worker in workers if worker.rank == 2)
            dead.die()
            survivors = [worker for worker in workers if 2 in worker.links]
            for worker in survivors:
                del worker.links[2]
            reborn = ClassicWorker(tracker.address, dead.task_id)
            recoveries = [lambda worker=worker: worker.start("recover") for worker in survivors]
            with threads([reborn.start, *recoveries]):
                pass
            self.assertEqual(reborn.rank, 2)
            self.assertEqual(set(reborn.links), {worker.rank for worker in survivors})
            for worker in [*(w for w in workers if w is not dead), reborn]:
                worker.shutdown()
            code, log = tracker.finish()
            self.assertEqual(code, 0)
            self.assertNotIn("dropped", log)

    def test_a_worker_that_dies_while_it_waits_is_replaced_by_its_restart(self):
        with local_tracker(3) as tracker:
            wire = workers_for(tracker, 1)[0].hello("start")
            wire.sock.close()
            workers = start_all(workers_for(tracker, 3))
            self.assertEqual(sorted(worker.rank for worker in workers), [0, 1, 2])

    def test_a_whole_job_restarts_in_place(self):
        with local_tracker(4) as tracker:
            for worker in start_all(workers_for(tracker, 4)):
                worker.die()
            workers = start_all(workers_for(tracker, 4))
            for worker in workers:
                self.assertEqual(worker.rank, int(worker.task_id))
                worker.shutdown()
            self.assertEqual(tracker.finish()[0], 0)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
