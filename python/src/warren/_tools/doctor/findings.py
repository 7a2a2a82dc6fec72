"""Runs all checks on the facts of the hosts. Pure functions."""
from typing import List

from warren._tools.doctor import between_hosts, on_hosts
from warren._tools.doctor.model import OK, PROBLEM, WARNING, Finding, Survey, grouped

_CHECKS = (between_hosts.ssh, between_hosts.clock, between_hosts.links, between_hosts.names, on_hosts.versions, on_hosts.memory,
           on_hosts.kernel, on_hosts.gpus)


def diagnose(survey: Survey) -> List[Finding]:
    """Returns the findings, worst first. Equally severe findings are in the order in which a job would be affected by them: access to the
    hosts, connections between hosts, the hosts themselves."""
    found = [one for check in _CHECKS for one in grouped(check(survey))]
    order = (PROBLEM, WARNING, OK)
    return sorted(found, key=lambda one: order.index(one.level))
