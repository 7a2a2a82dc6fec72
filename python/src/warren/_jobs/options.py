"""dmlc-submit's options as Python's keyword arguments."""
import operator
import os
from typing import Any, Dict, Iterable, List, Mapping, Tuple

#: The options that a job started from Python cannot have, with the reasons.
_REFUSED = {
    "no_tracker": "the processes find this one at the tracker's address",
    "num_servers": "parameter servers run no function",
    "mode": "it is for parameter servers",
    "until_stdin_closes": "the job ends with this process anyway",
    "job": "a job file names a command, whose place the function takes; give its options as arguments",
    "log_format": "the output is for people; job.logs() returns it",
    **dict.fromkeys(("dry_run", "show_hosts", "help", "help_markdown", "help_environment", "help_man", "help_schema", "completion",
                     "version", "kube_manifest", "detach", "save"), "it starts no job that this process could wait for"),
}


def words_of(num_workers: Any, options: Mapping[str, Any]) -> Tuple[List[str], Dict[str, str]]:
    """Returns dmlc-submit's arguments for these options, and the environment variables of `env`. The variables are not among the arguments,
    because all users of a machine can read the arguments of its processes; the caller passes them on with `passing`. Raises ValueError or
    TypeError for an option that cannot be given; dmlc-submit itself refuses options that do not exist."""
    words, environment = ["--num-workers", _workers(num_workers)], _environment(options.get("env"))
    for name, value in options.items():
        name = name.replace("-", "_")
        if name == "num_workers":
            raise ValueError("num_workers is given twice")
        if name in _REFUSED:
            raise ValueError(f"{name}: a job that is started from Python does not have this option: {_REFUSED[name]}")
        option = f"--{name.replace('_', '-')}"
        if name == "env" or value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            for one in value:
                words += [option, _text(name, one)]
        else:
            # Options whose value is optional take it only after "=".
            words += [f"{option}={_text(name, value)}"]
    return words, environment


def cluster_of(options: Mapping[str, Any]) -> str:
    """Returns the kind of cluster on which dmlc-submit starts a job with these options."""
    return str(options.get("cluster") or os.environ.get("DMLC_SUBMIT_CLUSTER") or "local").lower()


def passing(names: Iterable[str]) -> List[str]:
    """Returns the arguments with which dmlc-submit passes on these variables, with their values in its environment."""
    return [word for name in sorted(names) for word in ("--env", name)]


def _workers(number: Any) -> str:
    if isinstance(number, (tuple, list)) and len(number) == 2 and all(_is_count(one) for one in number):
        return f"{number[0]}:{number[1]}"
    if not _is_count(number):
        raise ValueError(f"num_workers is {number!r}, expected a number of workers, or (MIN, MAX)")
    return str(number)


def _is_count(number: Any) -> bool:
    """Whether `number` is a valid number of workers: a positive Python or NumPy integer, not a bool."""
    try:
        return not isinstance(number, bool) and operator.index(number) > 0
    except TypeError:
        return False


def _environment(given: Any) -> Dict[str, str]:
    """Returns the variables of `env`: a dict, or a list of KEY=VALUE or KEY, which stands for the variable's value in this process. Raises
    ValueError if a KEY is not set."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): _text(f"env[{name!r}]", value) for name, value in given.items()}
    found = {}
    for word in [given] if isinstance(given, str) else given:
        name, has_value, value = str(word).partition("=")
        if not has_value and name not in os.environ:
            raise ValueError(f"env: {name} is not set in the environment; give its value, as in env={{{name!r}: ...}}")
        found[name] = value if has_value else os.environ[name]
    return found


def _text(name: str, value: Any) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (int, float)):
        return str(value)
    raise TypeError(f"{name} is {value!r}, expected a text, a number, a path, True, or a list of these")
