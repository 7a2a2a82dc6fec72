"""Sends reports from this process to anyone who watches its job, through librabit. Does nothing, at almost no cost, outside a job."""
import ctypes
import functools
import os
from typing import Mapping, Optional, SupportsFloat

from warren._engine import native as _native


def wanted() -> bool:
    """Whether dmlc-submit started this process with reports enabled."""
    return os.environ.get("WARREN_REPORT_SECONDS", "") not in ("", "0")


def _loaded(name: str) -> Optional[ctypes.CDLL]:
    """Returns a library that this process has loaded already, or None. Used for librabit_xgboost, which reports XGBoost's collectives: the
    program's reports should go through the same library, rather than through librabit's own thread and connection."""
    try:
        return ctypes.CDLL(str(_native.library_file(name)), mode=os.RTLD_NOLOAD)
    except OSError:
        return None


@functools.lru_cache(maxsize=None)
def _library() -> Optional[ctypes.CDLL]:
    """Returns None if the library cannot be loaded: no program should fail because of a report."""
    try:
        library = _loaded("librabit_xgboost.so") or _native.library("librabit.so")
        library.WarrenReportProgress.argtypes = [ctypes.c_longlong, ctypes.c_longlong, ctypes.POINTER(ctypes.c_char_p),
                                                 ctypes.POINTER(ctypes.c_double), ctypes.c_size_t]
        library.WarrenReportReading.argtypes = [ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_ulonglong, ctypes.c_ulonglong,
                                                ctypes.c_double]
    except (OSError, AttributeError):
        return None
    return library


def progress(number: int, of: Optional[int], metrics: Mapping[str, SupportsFloat]) -> None:
    """See warren.progress."""
    values = {name.encode("utf-8", "replace"): float(value) for name, value in metrics.items()}
    library = _library() if wanted() else None
    if library is not None:
        library.WarrenReportProgress(int(number), int(of or 0), (ctypes.c_char_p * len(values))(*values),
                                     (ctypes.c_double * len(values))(*values.values()), len(values))


def reading(what: str, rows: int, size: int, total_bytes: int, seconds: float) -> None:
    """Reports that `rows` rows and `size` bytes of the data set `what` have been read in `seconds`. total_bytes: the bytes at the end, 0 if
    unknown. An empty `what` means that reading has ended."""
    library = _library() if wanted() else None
    if library is not None:
        library.WarrenReportReading(what.encode("utf-8", "replace"), rows, size, total_bytes, seconds)
