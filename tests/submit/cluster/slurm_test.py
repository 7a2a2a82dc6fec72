"""dmlc-submit --cluster slurm on a real Slurm: srun inside an allocation, sbatch outside one."""

import json
import os
import time
import unittest

import slurm_cluster
from cluster_case import MEMBER, BindingBehaviour, ClusterBehaviour, QueueBehaviour, ServersCase, WatchingBehaviour
from slurm_cluster import SlurmCluster
from submit_case import LIMIT_S
from warren_testing import wait_for

WHY_NOT = slurm_cluster.why_not()


class SlurmCase(ServersCase):
    CLUSTER = "slurm"

    @classmethod
    def make_servers(cls, directory):
        return SlurmCluster(directory, nodes=3, cpus=4, gpus=2)

    def local_ranks(self, workers):
        process = self.submit("--num-workers", workers, "sh", "-c", "echo $DMLC_TASK_ID $SLURMD_NODENAME")
        nodes = dict(line.split("] ")[1].split() for line in process.out.splitlines())
        hosts = [nodes[str(rank)] for rank in range(workers)]
        return [(hosts[:rank].count(host), hosts.count(host)) for rank, host in enumerate(hosts)]

    def threads_of_two(self):
        return 1  # the value of --cpus-per-task

    def jobs(self):
        done = self.servers.run("squeue", "--noheader", "--format=%i", capture_output=True, text=True)
        return done.stdout.split()

    def cancel(self, *jobs):
        self.servers.run("scancel", *jobs)

    def check_nothing_is_left(self, seconds=15.0):
        super().check_nothing_is_left(seconds)  # salloc and slurmstepd are slow


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Srun(ClusterBehaviour, SlurmCase):
    """srun inside an allocation."""

    CAN_BE_LEFT = False  # salloc ends the allocation with its command

    def enter(self, command):
        return ["salloc", "--quiet", "--ntasks=8", "--overcommit", *command]

    def test_what_srun_complains_of_is_shown_and_is_the_story(self):
        process = self.submit("--num-workers", 2, "--slurm-args", "--nodes=77", "true")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("[srun] ", process.err)
        self.assertIn("ended with srun, which exited with code 1", process.err)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class MpirunInAnAllocation(SlurmCase):
    """Open MPI's mpirun uses the nodes of a Slurm allocation."""

    def cluster_options(self):
        return ["--cluster", "mpi", "--mpirun", "mpirun.openmpi"]

    def enter(self, command):
        return ["salloc", "--quiet", "--ntasks=4", "--nodes=2", *command]

    def test_the_processes_run_on_the_nodes_of_the_allocation(self):
        process = self.submit("--num-workers", 4, "sh", "-c", "echo $SLURMD_NODENAME")
        self.assertEqual(process.returncode, 0, process.err)
        nodes = [line.split()[1] for line in process.out.splitlines()]
        self.assertEqual((len(nodes), len(set(nodes))), (4, 2), process.out)
        self.check_all_gone()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Sbatch(QueueBehaviour, ClusterBehaviour, SlurmCase):
    """sbatch outside an allocation."""

    REFUSAL = "invalid partition specified: nonesuch"
    CANCELLED = r"worker \d .*(SIGTERM|CANCELLED)"
    HOLD = ("--slurm-args", "--begin=now+1hour")
    HELD = "PENDING (BeginTime)"

    def test_the_job_has_its_name_partition_nodes_and_cores(self):
        code = "[ $DMLC_TASK_ID = 1 ] || scontrol -o show job $SLURM_JOB_ID; echo $SLURMD_NODENAME > node-$DMLC_TASK_ID"
        process = self.submit("--num-workers", 3, "--slurm-worker-nodes", 3, "--worker-cores", 2, "--worker-memory", "128m",
                              "--queue", "all", "--jobname", "the name", "--time-limit", "7", "sh", "-c", code)  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        for part in ("JobName=the name ", "Partition=all ", "NumNodes=3 ", "CPUs/Task=2 ", "TimeLimit=00:07:00",
                     "MinMemoryCPU=64M", "Requeue=1"):  # fmt: skip
            self.assertIn(part, process.out)
        nodes = {self.file(f"node-{task}").read_text() for task in range(3)}
        self.assertEqual(len(nodes), 3)
        self.assertRegex(process.err, r"this is job \d+ of Slurm")

    def test_each_worker_gets_its_gpus(self):
        """Slurm hands out the device files of fake GPUs."""
        code = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
        process = self.submit("--num-workers", 4, "--slurm-worker-nodes", 3, "--worker-gpus", 1, "sh", "-c", code)
        self.assertEqual(process.returncode, 0, process.err)
        given = [tuple(line.split()[1:]) for line in process.out.splitlines()]
        self.assertEqual([len(one) for one in set(given)], [2] * 4, given)
        self.assertEqual(len({node for node, _ in given}), 3)
        process = self.submit("--num-workers", 1, "--worker-gpus", 3, "true")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("Requested node configuration is not available", process.err)

    def test_a_job_that_is_put_back_into_the_queue_begins_again(self):
        code = "echo ready > ready-$DMLC_TASK_ID; [ $DMLC_NUM_ATTEMPT != 0 ] || exec sleep 600; echo attempt $DMLC_NUM_ATTEMPT"
        process = self.start("--num-workers", 2, "sh", "-c", code)
        self.ready(2)
        (job,) = self.jobs()
        self.servers.run("scontrol", "requeue", job)

        self.start_again(job, lambda: all(self.file(f"ready-{task}").exists() for task in (0, 1)))
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(f"job {job} was put back into the queue of Slurm; starting all 2 processes again", err.decode())
        self.assertEqual(sorted(out.decode().splitlines()), [f"[{task}] attempt 1" for task in (0, 1)])

    def test_slurm_is_asked_about_a_job_whose_launcher_is_lost_and_ends_it(self):
        name = self.lose_launcher("--num-workers", 2, "--slurm-args", "--begin=now+1hour", "true")
        (job,) = self.jobs()
        status = self.warren("status", name)
        self.assertEqual(status.returncode, 1, status.stderr)
        self.assertIn("the launcher (dmlc-submit) was killed", status.stdout)
        self.assertIn(f"job {job} of Slurm: PENDING|BeginTime", status.stdout)
        self.assertEqual(json.loads(self.warren("status", "--json", name).stdout)["kept"], [[f"job {job} of Slurm", "PENDING|BeginTime"]])
        record = self.record_of(name)
        record.chmod(0o620)
        refused = self.warren("cancel", name)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"`scancel {job}` ends it; others may have written its record, so this is not done here", refused.stderr)
        record.chmod(0o600)
        cancelled = self.warren("cancel", name)
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)
        self.assertIn(f"scancel {job} ended job {job} of Slurm", cancelled.stdout)
        wait_for(lambda: not self.jobs(), LIMIT_S, "the end of the job")

    def start_again(self, job, has_begun):
        """Waits until a job that was put back into the queue has begun."""
        def again():
            # Slurm delays a requeued job by two minutes, unless its start time is changed. More frequent changes would keep
            # postponing the start.
            time.sleep(1)
            self.servers.run("scontrol", "update", f"JobId={job}", "StartTime=now", capture_output=True)
            return has_begun()

        wait_for(again, LIMIT_S, "the second start")

    def test_an_elastic_job_that_is_put_back_into_the_queue_begins_again(self):
        process = self.start("--num-workers", "1:2", *MEMBER)
        self.wait_for_files("met-0-1-of-2", "met-1-1-of-2")
        (job,) = self.jobs()
        self.servers.run("scontrol", "requeue", job)
        self.wait_for_text(process.stderr, "was put back into the queue")
        for file in self.directory.glob("met-*"):
            file.unlink()
        self.start_again(job, lambda: len([*self.directory.glob("met-*-of-2")]) >= 2)
        self.finish(process)

    def test_an_elastic_job_goes_on_without_a_node_that_fails(self):
        process = self.start("--num-workers", "1:3", "--slurm-worker-nodes", 3, *MEMBER)
        self.wait_for_files("met-0-1-of-3", "met-1-1-of-3", "met-2-1-of-3")
        (job,) = self.jobs()
        batch_host = self.servers.run("squeue", "--noheader", f"--job={job}", "--format=%B", capture_output=True, text=True).stdout.strip()
        last = next(node for node in self.servers.nodes[::-1] if node != batch_host)
        self.addCleanup(self.servers.bring_back, last)
        self.servers.set_down(last)
        wait_for(lambda: len([*self.directory.glob("met-*-2-of-2")]) == 2, LIMIT_S, "the second generation")
        self.assertIn("the other 2 go on without it: its place is gone", self.finish(process))

    def test_what_slurm_says_is_kept_with_the_logs(self):
        process = self.submit("--num-workers", 1, "--log-dir", "logs", "true")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(len(list(self.file("logs").glob("slurm-*.log"))), 1)


class BindingCase(SlurmCase):
    """A cluster of one node, which has this machine's cores and binds tasks to them."""

    OPTIONS = ("--slurm-worker-nodes", 1)

    @classmethod
    def make_servers(cls, directory):
        return SlurmCluster(directory, nodes=1, cpus=os.cpu_count(), task_plugin="affinity")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SrunBinding(BindingBehaviour, BindingCase):
    def enter(self, command):
        return ["salloc", "--quiet", "--ntasks=2", *command]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SbatchBinding(BindingBehaviour, BindingCase):
    pass


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SbatchWatching(WatchingBehaviour, SlurmCase):
    pass


del ClusterBehaviour, BindingBehaviour, QueueBehaviour, WatchingBehaviour  # not tests by themselves

if __name__ == "__main__":
    unittest.main()
