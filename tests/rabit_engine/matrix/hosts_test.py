"""Several hosts, as network namespaces: shared memory within hosts, TCP between them, over IPv4, IPv6, a slow and a bad network; and hosts that
disappear."""

import time
import unittest

import network_namespaces
from jobs import TCP, Job
from network_namespaces import NetworkNamespaces

WHY_NOT = network_namespaces.why_not()
if WHY_NOT:
    print(f"SKIPPED: {WHY_NOT}", flush=True)

# The number of ranks on each host, in rank order: the tracker sorts workers by host.
LAYOUTS = [[2, 2], [4, 4], [1, 1], [4, 2], [3, 1], [3, 3], [2, 2, 2], [4, 1, 2], [2, 2, 2, 2],
           [3, 3, 3], [3, 2, 4], [5, 1]]
NO_SUBTREES = [[3, 1], [3, 3], [4, 1, 2], [3, 3, 3], [3, 2, 4], [5, 1]]
# The default limit for keepalive and unacknowledged data is 30 s.
SILENT_HOST_SECONDS = 40.0


def host_of_task(layout):
    return [host for host, ranks in enumerate(layout) for _ in range(ranks)]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class HostsCase(unittest.TestCase):
    def compare(self, hosts, layout, *arguments, env=None):
        """Checks that the results on these hosts are the same as on one host with TCP only. Returns what the ranks printed to stderr."""
        ranks = sum(layout)
        with Job(ranks, *arguments, env=TCP) as job:
            expected = job.checksum(self)
        with Job(ranks, *arguments, env={"WARREN_PRINT_CHOICE": "1", **(env or {})}, hosts=hosts,
                 host_of_task=host_of_task(layout)) as job:
            outputs, errors = job.succeed(self)
        self.assertEqual(outputs, [expected])
        return errors

    def emulate(self, change, what):
        """Calls the function `change`, which makes the kernel emulate another network. `what` is its argument. Skips the test if the kernel cannot do this."""
        try:
            change(what)
        except OSError as error:
            self.skipTest(f"SKIPPED: this kernel cannot do this: {error}")


class Hosts(HostsCase):
    def check_layouts(self, layouts, ipv6):
        with NetworkNamespaces("warren-test", ipv6=ipv6) as hosts:
            hosts.add_hosts(4)
            for layout in layouts:
                with self.subTest(layout=layout, ipv6=ipv6):
                    choices = self.compare(hosts, layout, "random", 150)
                    # Hosts of equal size are subtrees of the reduction order if that size is a power of two; other hosts need not
                    # be.
                    whole = all(ranks in (1, 2, 4) for ranks in layout[:-1]) and len(set(layout)) == 1
                    if whole and max(layout) > 1:
                        self.assertRegex(choices, r"allreduce.*: hierarchical\n")
                    if layout in NO_SUBTREES:
                        self.assertIn("hierarchical_subtrees", choices)
                    # Slots and rings in shared memory cannot connect different hosts.
                    self.assertNotIn("shared_memory", choices)

    def test_ranks_share_memory_inside_hosts_and_talk_tcp_between(self):
        self.check_layouts(LAYOUTS, ipv6=False)

    def test_the_same_where_there_is_ipv6_only(self):
        self.check_layouts(LAYOUTS[:3], ipv6=True)

    def test_containers_that_share_a_name_but_no_memory_talk_tcp(self):
        with NetworkNamespaces("warren-test", host_name="the-same") as hosts:
            hosts.add_hosts(2)
            choices = self.compare(hosts, [1, 1], "random", 50)
            self.assertIn("2 hosts", choices)

    def test_every_collective_and_type_between_hosts(self):
        with NetworkNamespaces("warren-test") as hosts:
            hosts.add_hosts(3)
            for layout in ([2, 2], [2, 1, 2]):
                with self.subTest(layout=layout):
                    self.compare(hosts, layout, "all")

    def test_a_killed_rank_is_named_on_all_hosts_within_a_second(self):
        with NetworkNamespaces("warren-test") as hosts:
            hosts.add_hosts(3)
            layout = [2, 2, 2]
            for victim in (0, 3):
                with self.subTest(victim=victim), Job(6, "wait", victim, hosts=hosts,
                                                      host_of_task=host_of_task(layout)) as job:
                    job.await_ready()
                    job.kill(victim, self)

    def test_a_host_without_a_network_is_given_up_after_half_a_minute(self):
        self.check_silent_host({}, 30, SILENT_HOST_SECONDS)

    def test_a_host_without_a_network_is_given_up_when_the_user_wants(self):
        self.check_silent_host({"WARREN_HOST_TIMEOUT": "4"}, 4, 10.0)

    def check_silent_host(self, env, told_s, limit_s):
        # The ranks of one job wait for the lost host; two other jobs have data in transit, with and without shared memory in hosts.
        where = {"host_of_task": host_of_task([2, 2])}
        with NetworkNamespaces("warren-test") as hosts:
            hosts.add_hosts(2)
            with Job(4, "wait", 3, hosts=hosts, env=env, **where) as waiting, \
                    Job(4, "stream", hosts=hosts, env=env, **where) as streaming, \
                    Job(4, "stream", hosts=hosts, env={**TCP, **env}, **where) as flat:
                jobs = (waiting, streaming, flat)
                for job in jobs:
                    job.await_ready()
                hosts.cut_off(1)
                begin = time.monotonic()
                for job in jobs:
                    told = ""
                    for rank in (0, 1):
                        _, errors = job.by_rank[rank].communicate(timeout=120)
                        told += errors
                        self.assertEqual(job.by_rank[rank].returncode, 2, errors)
                        self.assertRegex(errors, r"rank [01]\b.*(lost|gives up).*rank [23]\b|rank [01]\b.*rank [23]\b.* lost")
                    self.assertRegex(told, r"rank [23] at 10\.77\.0\.2:\d+: its host (has not answered for "
                                           rf"{told_s} s \(WARREN_HOST_TIMEOUT\)|does not answer)")
                self.assertLess(time.monotonic() - begin, limit_s)


class SlowNetwork(HostsCase):
    """The sender finds out that a link is slow, and packs histograms."""

    def megabytes_sent(self, hosts, packing):
        before = hosts.bytes_sent()
        with Job(2, "histograms", env={"WARREN_PACKING": packing}, hosts=hosts, host_of_task=[0, 1]) as job:
            job.succeed(self)
        return (hosts.bytes_sent() - before) / 1e6

    def test_histograms_are_packed(self):
        with NetworkNamespaces("warren-test") as hosts:
            hosts.add_hosts(2)
            self.emulate(hosts.limit, "1gbit")
            plain = self.megabytes_sent(hosts, "off")
            self.assertGreater(plain, 2 * 400 * 65536 / 1e6)
            # A sixteenth of the words is left, with about half of their bytes.
            self.assertLess(self.megabytes_sent(hosts, "always"), plain / 8)
            self.assertLess(self.megabytes_sent(hosts, "auto"), plain / 8)


class BadNetwork(HostsCase):
    """Delayed and lost packets change only the time that a job takes."""

    def test_delay_and_loss_by_the_kernels_netem(self):
        with NetworkNamespaces("warren-test") as hosts:
            hosts.add_hosts(3)
            self.emulate(hosts.shape, "delay 2ms 1ms loss 1%")
            self.compare(hosts, [2, 2, 1], "random", 60)

    def test_delay_and_loss_by_a_stand_in_for_netem(self):
        with NetworkNamespaces("warren-test", slow_wire=["--delay-ms", 2, "--loss", 0.01]) as hosts:
            try:
                hosts.add_hosts(3)
            except OSError as error:
                self.skipTest(f"SKIPPED: {error}")
            self.compare(hosts, [2, 2, 1], "random", 60)


if __name__ == "__main__":
    unittest.main()
