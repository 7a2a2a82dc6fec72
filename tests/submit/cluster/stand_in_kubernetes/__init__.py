"""A stand-in for a Kubernetes cluster and kubectl, for tests: API server, Job controller, garbage collector, scheduler and kubelet are
threads of the test's process; kubectl is a script that asks them over a socket. It follows the rules of Kubernetes 1.32 and refuses what
it does not support. Objects are created by server-side apply, which never changes existing ones.

A container is a process in its own PID, mount and UTS namespaces, with its command as PID 1. Unlike in a cluster, all pods share the
network of the thread that makes the cluster (every pod's address is 127.0.0.1, so two pods cannot listen at one port) and the host's
file system, except for their volumes and /etc/hosts, which stands in for the cluster's DNS: no other name is known. Images are names,
with neither an entrypoint nor files; requests and limits are checked but have no effect; there is no authentication."""

from .client import VARIABLE
from .server import StandInKubernetes, why_not

__all__ = ["VARIABLE", "StandInKubernetes", "why_not"]
