"""A stand-in for a Kubernetes cluster and kubectl, for tests. The API server, Job controller, garbage collector, scheduler and kubelet are
threads of the test's process; kubectl is a script that sends its requests over a socket. The stand-in follows the rules of Kubernetes
1.32 as far as dmlc-submit uses them, and rejects everything else. Objects are created by server-side apply, which never changes
existing ones.

A container is a process in its own PID, mount and UTS namespaces, with its command as PID 1. Unlike in a real cluster, all pods share
the network of the thread that creates the cluster: every pod's address is 127.0.0.1, so two pods cannot listen on the same port. They
also share the host's file system, except for their volumes and /etc/hosts. The latter replaces the cluster's DNS; other names are
unknown. Images are mere names, without entrypoint or files. Resource requests are used for scheduling; limits are checked but not
enforced. There is no authentication."""

from .client import VARIABLE
from .network import own_network
from .server import StandInKubernetes, why_not

__all__ = ["VARIABLE", "StandInKubernetes", "own_network", "why_not"]
