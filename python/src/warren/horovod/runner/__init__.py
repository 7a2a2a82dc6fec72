"""`horovod.runner`: calls functions in new processes, which warren.run starts."""
import os
import pathlib
import pickle
import sys
import tempfile
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional

#: The arguments of Horovod's function that have no effect: Warren offers only one choice, or the options of dmlc-submit decide.
_WITHOUT_EFFECT = ("slots", "reset_limit", "cooldown_range", "start_timeout", "ssh_port", "ssh_identity_file", "disable_cache",
                   "output_filename", "verbose", "use_gloo", "use_mpi", "mpi_args", "network_interfaces", "executable",
                   "prefix_output_with_timestamp")


def run(func: Any, args: Iterable[Any] = (), kwargs: Optional[Mapping[str, Any]] = None, np: int = 1, min_np: Optional[int] = None,
        max_np: Optional[int] = None, hosts: Optional[str] = None, hostfile: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
        **others: Any) -> List[Any]:
    """Calls `func(*args, **kwargs)` in each of `np` processes of a job, and returns the results in rank order. `min_np` and `max_np` make the
    job elastic (hvd.elastic). The processes run on this machine, or on the hosts given by `hosts` ("node1:2,node2:2") or `hostfile`
    (lines such as "node1 slots=2"), over ssh. See warren.run for the values that can be sent to other processes, and for the exceptions.

    Horovod's other arguments have no effect here, and a warning names them. Raises RuntimeError in a process of a job, and TypeError for
    arguments that Horovod does not have."""
    from warren import run as run_in_job  # pylint: disable=import-outside-toplevel  # it needs modules that workers do not
    from warren._jobs import pickling  # pylint: disable=import-outside-toplevel

    unknown = sorted(set(others) - set(_WITHOUT_EFFECT))
    if unknown:
        raise TypeError(f"horovod.run has no argument {unknown[0]!r}")
    if os.environ.get("DMLC_TRACKER_URI"):
        raise RuntimeError("horovod.run: this process is a worker of a job already; call the function here, or start the program without "
                           "dmlc-submit")
    given = [name for name, value in others.items() if value not in (None, False)]
    if given:
        warnings.warn(f"horovod.run: {', '.join(given)} without effect; dmlc-submit has options for most of them, which "
                      "warren.run(..., option=value) takes", stacklevel=2)
    num_workers: Any = np if min_np is None and max_np is None else (min_np or np, max_np or np)
    options: Dict[str, Any] = {} if env is None else {"env": dict(env)}
    work = pickling.dumps((func, tuple(args), dict(kwargs or {})), "horovod.run: the function")
    has_names = "warren.compat" in sys.modules
    if hosts is None and hostfile is None:
        return run_in_job(_call, work, has_names, num_workers=num_workers, **options)
    with tempfile.TemporaryDirectory(prefix="warren-hosts-") as folder:
        file = pathlib.Path(hostfile or pathlib.Path(folder, "hosts"))
        if hostfile is None:
            file.write_text("".join(_line(host) for host in str(hosts).split(",")), encoding="utf-8")
        return run_in_job(_call, work, has_names, num_workers=num_workers, cluster="ssh", host_file=str(file), **options)


def _line(host: str) -> str:
    """Returns the line of a host file for a host such as "node1:2"."""
    name, _, slots = host.strip().rpartition(":")
    return f"{name} slots={slots}\n" if name else f"{slots}\n"


def _call(work: bytes, has_names: bool) -> Any:
    """Called in each process. `has_names`: whether `import horovod` means warren.horovod."""
    if has_names:
        import warren.compat  # pylint: disable=import-outside-toplevel,unused-import
    func, args, kwargs = pickle.loads(work)  # received over a connection authenticated with the job's token
    return func(*args, **kwargs)
