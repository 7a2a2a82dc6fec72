"""The rules for retrying storage operations, for all kinds of stores: after which errors, how often, and which error is raised in the
end."""
import concurrent.futures
import errno
import http.client
import random
import re
import time
import urllib.error
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, TypeVar

from warren.data._files.names import shown

T = TypeVar("T")

_ALL_RIGHT_LATER = (408, 425, 429)
_NOT_FOUND = frozenset(("NO_SUCH_BUCKET", "NO_SUCH_KEY", "NO_SUCH_UPLOAD", "RESOURCE_NOT_FOUND"))
_DENIED = frozenset(("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_SIGNATURE", "EXPIRED_TOKEN",
                     "INVALID_CLIENT_TOKEN_ID", "MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT", "INCOMPLETE_SIGNATURE",
                     "OPT_IN_REQUIRED", "ACCOUNT_PROBLEM", "INVALID_TOKEN"))
_WRONG = frozenset(("INVALID_ACTION", "INVALID_PARAMETER_VALUE", "INVALID_QUERY_PARAMETER", "MALFORMED_QUERY_STRING",
                    "VALIDATION", "INVALID_OBJECT_STATE", "BUCKET_ALREADY_EXISTS",
                    "MISSING_PARAMETER", "INVALID_PARAMETER_COMBINATION"))
_NO_USE = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP)


@dataclass(frozen=True)
class Retry:
    """The limits for retrying a request: it fails once `attempts` or `total_s` is reached."""
    attempts: int = 6
    first_wait_s: float = 0.2
    greatest_wait_s: float = 10.0
    total_s: float = 300.0  #: no attempt starts later than this after the first one

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.first_wait_s <= self.greatest_wait_s or not self.total_s > 0:
            raise ValueError(f"{self}: expected at least one attempt, 0 <= first_wait_s <= greatest_wait_s, and total_s > 0")

    def wait_s(self, failures: int, chance: float) -> float:
        """Returns the time to wait after the `failures`th failure, counted from 1, in seconds. It doubles with each failure, up to
        `greatest_wait_s`. `chance`, in [0, 1), reduces it by up to half, so that workers that failed at the same time do not retry at the same
        time."""
        doubled = self.first_wait_s * 2.0 ** min(failures - 1, 100)
        return min(self.greatest_wait_s, doubled) * (1 - chance / 2)


class Changed(OSError):
    """Raised if a file has changed since it was listed, or if it cannot be read by byte ranges. Never retried."""


class Cut(ConnectionError):
    """Raised if a read ended early. `data`: received bytes that have not been passed on otherwise."""

    def __init__(self, data: bytes, why: str) -> None:
        super().__init__(why)
        self.data = data


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and the errors that it wraps, from the outermost to the innermost."""
    following: Optional[object] = error
    for _ in range(8):
        if not isinstance(following, BaseException):
            return
        yield following
        following = getattr(following, "reason", None) if isinstance(following, urllib.error.URLError) else following.__cause__


def kind_of(error: BaseException) -> str:
    """Classifies a storage error: "missing", "denied", "transient" (a retry may help), "final" (a retry is useless), or "foreign" (not a
    storage error at all, but for example a bug)."""
    if isinstance(error, (Changed, IsADirectoryError, FileExistsError)):
        return "final"
    if isinstance(error, NotADirectoryError):  # a file's name stands where the path needs a folder
        return "missing"
    for one in _causes(error):
        if isinstance(one, FileNotFoundError):
            return "missing"
        if isinstance(one, PermissionError):
            return "denied"
        if isinstance(one, OSError) and isinstance(one, ValueError):  # such as ssl.SSLCertVerificationError
            return "final"
        # `code` is used for urllib's errors only: aiohttp sets it to 400 for a broken body, although no server has sent that status.
        status = one.code if isinstance(one, urllib.error.HTTPError) else getattr(one, "status", None)
        aws = re.search(r"AWS Error ([A-Z0-9_]+)(?: \(HTTP status (\d+)\))?", str(one))
        if aws is not None:
            word, status = aws.group(1), int(aws.group(2) or 0)
            if word in _NOT_FOUND or word in _DENIED or word in _WRONG:
                return "missing" if word in _NOT_FOUND else "denied" if word in _DENIED else "final"
        if isinstance(status, int) and status >= 300:
            if status in _ALL_RIGHT_LATER or (status >= 500 and status not in (501, 505)):
                return "transient"
            return "missing" if status in (404, 410) else "denied" if status in (401, 403, 407) else "final"
        if isinstance(one, OSError) and one.errno in _NO_USE:
            return "final"
    if isinstance(error, (OSError, EOFError, http.client.HTTPException, concurrent.futures.TimeoutError, TimeoutError)):
        return "transient"
    module = type(error).__module__
    if module.startswith(("asyncio", "aiohttp", "botocore", "aiobotocore", "fsspec", "paramiko")):
        return "transient"
    return "foreign"


def words(error: BaseException) -> str:
    """The error's message, on one line and without passwords."""
    return shown(" ".join(str(error).split())) or type(error).__name__


def persist(step: Callable[[], T], what: str, retry: Retry, *, sleep: Callable[[float], None] = time.sleep,
            clock: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random) -> T:
    """Returns the result of `step`, which is retried after transient errors. `what` is the beginning of error messages, such as "s3://b/x:
    bytes 0-9".

    Raises FileNotFoundError, PermissionError, TimeoutError or OSError with the number of attempts and the store's message; Changed, and errors
    that are not storage errors (see kind_of), unchanged."""
    begin = clock()
    attempt = 0
    while True:
        attempt += 1
        try:
            return step()
        except Changed:
            raise
        except Exception as error:  # pylint: disable=broad-except
            kind = kind_of(error)
            if kind == "foreign":
                raise
            wait_s = retry.wait_s(attempt, chance())
            spent_s = clock() - begin
            if kind != "transient" or attempt >= retry.attempts or spent_s + wait_s >= retry.total_s:
                tries = f"{attempt} attempt{'s' if attempt > 1 else ''} in {spent_s:.1f} s"
                advice = {"missing": "it does not exist", "denied": "access is denied; check the credentials"}.get(kind, "failed")
                timed_out = any(isinstance(one, TimeoutError) for one in _causes(error)) or "curlCode: 28" in str(error)
                raised = {"missing": FileNotFoundError, "denied": PermissionError}.get(kind, TimeoutError if timed_out else OSError)
                raise raised(f"{what}: {advice}, {tries}: {words(error)}") from error
        sleep(wait_s)
