"""dmlc-submit --cluster sge on a real Grid Engine."""

import subprocess
import unittest

import sge_cluster
from cluster_case import ClusterBehaviour, QueueBehaviour, ServersCase
from sge_cluster import SgeCluster
from warren_testing import wait_for

WHY_NOT = sge_cluster.why_not()


class SgeCase(ServersCase):
    CLUSTER = "sge"

    @classmethod
    def make_servers(cls, directory):
        return SgeCluster(directory, slots=8)

    def threads_of_two(self):
        return 1  # each worker has one slot

    def jobs(self):
        lines = self.servers.run("qstat", capture_output=True, text=True).stdout.splitlines()[2:]
        return {line.split()[0] for line in lines}

    def cancel(self, *jobs):
        self.servers.run("qdel", *jobs, capture_output=True)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Sge(QueueBehaviour, ClusterBehaviour, SgeCase):
    REFUSAL = "nonesuch"
    CANCELLED = "worker"
    HOLD = ("--sge-args", "-h")
    HELD = "hqw"

    def test_the_job_has_its_name_queue_and_slots_and_a_log_of_its_own(self):
        self.file("logs").mkdir()
        process = self.submit("--num-workers", 2, "--worker-cores", 2, "--queue", "all.q", "--jobname", "theName",
                              "--sge-log-dir", "logs", "sh", "-c", "echo $JOB_NAME $QUEUE $NSLOTS $SGE_TASK_ID")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(process.out.splitlines()), [f"[{i}] theName all.q 2 {i + 1}" for i in (0, 1)])
        self.assertRegex(process.err, r"this is job \d+ of Grid Engine")
        wait_for(lambda: len(list(self.file("logs").glob("theName.*"))) == 4, 10, "the logs")

    def test_a_worker_has_as_many_threads_as_slots(self):
        for words in (("--worker-cores", 2), ("--sge-args", "-pe smp 2")):
            process = self.submit("--num-workers", 2, *words, "sh", "-c", "echo $OMP_NUM_THREADS of $NSLOTS")
            self.assertEqual(process.returncode, 0, process.err)
            self.assertEqual(sorted(process.out.splitlines()), ["[0] 2 of 2", "[1] 2 of 2"])

    def test_where_the_token_cannot_be_written_or_read_it_says_so(self):
        where = self.file("closed")
        where.mkdir()
        subprocess.run(["mount", "--bind", "-o", "ro", where, where], check=True)
        self.addCleanup(subprocess.run, ["umount", where], check=True)
        process = self.submit("--num-workers", 1, "true", cwd=where)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(process.err, "cannot create the directory .*/closed/.dmlc-submit-.*: Read-only file system; the hosts of "
                                      "the job read files there")  # fmt: skip
        code = "rm -r .dmlc-submit-*; kill -KILL $$"
        process = self.submit("--num-workers", 1, "--local-num-attempt", 1, "sh", "-c", code)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(process.err, r"worker 0 could not be started: \S+ cannot read the job's token in '.*/environment': "
                                      r"the hosts must share the directory in which dmlc-submit is started")  # fmt: skip

    def test_a_job_in_an_error_state_is_over_and_deleted(self):
        process = self.submit("--num-workers", 1, "--sge-log-dir", "/proc/nonesuch", "true")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("in the error state Eqw", self.last_line(process))


del ClusterBehaviour, QueueBehaviour  # not tests by themselves

if __name__ == "__main__":
    unittest.main()
