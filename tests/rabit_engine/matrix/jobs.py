"""Jobs of collectives_worker or another program, on this host or on several."""

import os
import signal
import subprocess
import time

from warren_testing import BIN, Tracker

WORKER = BIN / "collectives_worker"
# All ranks must report a loss within this time. It is long enough for a busy machine and far below the timeouts, which are 30 s or more.
# The engine checks for losses every 20 ms; on an idle machine, all ranks report within a second.
SOON_SECONDS = 10.0
# The environment in which ranks of one host use TCP.
TCP = {"WARREN_SHARED_MEMORY": "off"}


def on_hosts(layout):
    """Returns the arguments of a Job whose worker i is on host layout[i]. Ranks of different hosts share no memory."""
    return {"env_of_task": lambda task: {"WARREN_HOST_GROUP": layout[task]}}


class Job:
    """`num_workers` processes that join through a tracker. With `hosts` (NetworkNamespaces), worker i runs on host `host_of_task[i]`, and
    the tracker in a namespace between the hosts. Each worker is started through the command `enter`, if given."""

    def __init__(self, num_workers, *arguments, env=None, env_of_task=None, hosts=None, host_of_task=None,
                 enter=(), tracker_options=(), program=WORKER):
        address = hosts.middle_address if hosts else "127.0.0.1"
        self.tracker = Tracker("--num-workers", num_workers, "--host-ip", address, *tracker_options,
                               enter=(lambda command: hosts.inside("middle", command)) if hosts else None)
        self.workers = []
        self.by_rank = {}
        for task in range(num_workers):
            command = [*enter, program, *map(str, arguments)]
            if hosts:
                command = hosts.inside(host_of_task[task], command)
            task_env = {**os.environ, **self.tracker.env, "DMLC_TASK_ID": str(task), **(env or {}),
                        **(env_of_task(task) if env_of_task else {})}
            self.workers.append(subprocess.Popen(command, env=task_env, stdout=subprocess.PIPE,
                                                 stderr=subprocess.PIPE, text=True))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.kill()
            worker.communicate()
        self.tracker.__exit__()

    def await_ready(self):
        """Waits until all workers have printed their rank, as in mode `wait`, and fills by_rank."""
        for worker in self.workers:
            line = worker.stdout.readline()
            self.by_rank[int(line.split()[1])] = worker
        time.sleep(0.2)  # until all ranks that wait in a call are asleep

    def kill(self, victim, test):
        """After await_ready: kills rank `victim`, and fails `test` unless all other ranks soon exit with code 2 and name `victim`."""
        begin = time.monotonic()
        self.by_rank[victim].send_signal(signal.SIGKILL)
        for rank, worker in self.by_rank.items():
            if rank == victim:
                continue
            _, errors = worker.communicate(timeout=20)
            test.assertLess(time.monotonic() - begin, SOON_SECONDS)
            test.assertEqual(worker.returncode, 2, errors)
            test.assertRegex(errors, rf"rank {victim}\b")

    def finish(self, seconds=240):
        """Waits for all workers. Returns their exit codes, and each worker's stdout and stderr."""
        results = [worker.communicate(timeout=seconds) for worker in self.workers]
        return [worker.returncode for worker in self.workers], results

    def succeed(self, test, seconds=240):
        """Waits for all workers, and fails `test` unless all exit with code 0. Returns the outputs of those that print any, and the
        stderr of all."""
        codes, results = self.finish(seconds)
        errors = "".join(errors for _, errors in results)
        test.assertEqual(codes, [0] * len(self.workers), errors)
        return [out for out, _ in results if out], errors

    def checksum(self, test, seconds=240):
        """Returns the line that rank 0 prints if all ranks have the right results; fails `test` otherwise."""
        (line,), _ = self.succeed(test, seconds)
        return line
