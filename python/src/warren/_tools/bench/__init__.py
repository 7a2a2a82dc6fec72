"""`warren bench`: measures allreduce and broadcast on this machine or a cluster, against memory and network limits measured in the same job."""
import argparse
import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional, Sequence

from warren._engine import native as _native
from warren._tools.bench import report
from warren._tools.bench.cores import own_cores

_MODULE = "warren._tools.bench.worker"


def parser() -> argparse.ArgumentParser:
    """The parser for `warren bench`'s own options; all other words are passed to dmlc-submit."""
    made = argparse.ArgumentParser(
        prog="warren bench",
        usage="warren bench [--json] [--largest SIZE] [--samples N] [options of dmlc-submit]",
        allow_abbrev=False,
        description="Times allreduce and broadcast of 8 B to 64 MiB, compared with memory copies and "
        "messages between two ranks. Options of dmlc-submit choose the hosts: --num-workers N (default: one per core of this machine), "
        "--cluster ssh --host-file FILE and so on.")
    made.add_argument("--json", action="store_true", help="print the results as JSON")
    made.add_argument("--largest", metavar="SIZE", default="64m", help="the largest size, such as 1m. Default: 64m")
    made.add_argument("--samples",
                      type=int,
                      metavar="N",
                      default=15,
                      help="measurements per size, of which the median is shown. Default: 15")
    made.add_argument("--python",
                      metavar="PROGRAM",
                      default=sys.executable,
                      help="the Python with warren on the hosts of the ranks. Default: this one")
    return made


def size_of(text: str) -> int:
    """Converts a size such as '64m' to bytes. Raises ValueError if it is malformed or too small."""
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    number, unit = (text[:-1], text[-1].lower()) if text and text[-1].isalpha() else (text, "")
    if not number.isdigit() or unit not in units or int(number) * units[unit] < report.SMALLEST:
        raise ValueError(f"'{text}' is not a size; expected at least {report.SMALLEST}, such as 64k or 1m")
    return int(number) * units[unit]


def command_of(options: argparse.Namespace, rest: Sequence[str]) -> List[str]:
    """Returns the dmlc-submit command that runs the benchmark. Raises ValueError for an invalid size, and FileNotFoundError without
    dmlc-submit."""
    counts = any(word in ("-n", "--num-workers") or word.startswith(("-n=", "--num-workers=")) for word in rest)
    elsewhere = "DMLC_SUBMIT_CLUSTER" in os.environ or any(word.startswith(("--cluster", "--launcher")) for word in rest)
    number = [] if counts or elsewhere else ["--num-workers", str(max(2, own_cores()))]
    passed = [word for name in ("PYTHONPATH", "WARREN_NATIVE") if name in os.environ for word in ("--env", name)]
    return [
        _native.program("dmlc-submit"), *number, *passed, *rest, "--", options.python, "-m", _MODULE,
        str(size_of(options.largest)),
        str(max(1, options.samples))
    ]


def _measured(command: Sequence[str]) -> "tuple[int, Optional[Dict[str, Any]]]":
    """Runs the job. Returns its exit code, and the figures that its first rank printed, or None. All other output goes to standard error."""
    figures = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as job:
        assert job.stdout is not None
        for line in job.stdout:
            _, mark, text = line.partition(report.MARK)
            if mark:
                figures = json.loads(text)
            else:
                print(line, end="", file=sys.stderr)
    return job.returncode, figures


def run(words: Sequence[str]) -> int:
    """Runs `warren bench ...`; returns the exit code: dmlc-submit's, 2 if the options are invalid or dmlc-submit is missing, or 1 if the
    job printed no results, which is not an error with --dry-run."""
    options, rest = parser().parse_known_args(words)
    try:
        command = command_of(options, rest)
    except (ValueError, OSError) as error:
        print(f"warren bench: {error}", file=sys.stderr)
        return 2
    code, figures = _measured(command)
    if code != 0:
        return code
    if figures is None:
        print("warren bench: the job ended without results" + (" (--dry-run)" if "--dry-run" in rest else ""),
              file=sys.stderr)
        return 0 if "--dry-run" in rest else 1
    figures = report.with_limits(figures)
    print(json.dumps(figures, indent=2) if options.json else report.text(figures), end="\n" if options.json else "")
    return 0
