"""Files on web servers, which cannot list them."""
import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, List, Optional

from warren.data._files.names import shown
from warren.data._files.retry import Changed, Cut, words
from warren.data._files.stores import interface
from warren.data._files.stores.interface import Entry, Handle, Store

_RECEIVED_BYTES = 1 << 20
_ADVICE = "Copy the file, or serve it with nginx, Apache or rclone"


def _tag(headers: Any) -> str:
    return str(headers.get("ETag") or headers.get("Last-Modified") or "")


class _HttpHandle(Handle):
    def __init__(self, store: "Http", name: str) -> None:
        super().__init__(store.info(name), "the server answered 404")
        self._store, self._name = store, name

    def read(self, offset: int, size: int) -> bytes:
        data: List[bytes] = []
        have = 0
        wanted = f"{offset}-{offset + size - 1}"
        with self._store.request(self._name, "GET", wanted) as response:
            told = response.headers.get("Content-Range", "")
            self.tag = _tag(response.headers)
            if response.status != 206 or not re.match(rf"bytes {offset}-", told):
                raise Changed(f"{shown(self._store.uri(self._name))}: the server was asked for bytes {wanted}, and answered "
                              f"{response.status} with the bytes '{told or 'all'}': it cannot send byte ranges. {_ADVICE}")
            while have < size:
                try:
                    one = response.read1(min(_RECEIVED_BYTES, size - have))
                except (OSError, http.client.HTTPException) as error:
                    raise Cut(b"".join(data), f"{have} of {size} bytes, then {type(error).__name__}: {words(error)}") from error
                if not one:
                    break
                data.append(one)
                have += len(one)
        return b"".join(data)


class Http(Store):
    """The files of a web server, accessed with the standard library: unlike with fsspec, the data received before a connection broke are
    kept, and each response shows whether the file has changed. Uses the proxies of the environment (https_proxy)."""
    lists = False
    writes = False

    def request(self, name: str, method: str, byte_range: str = "") -> Any:
        """Returns a response, which the caller closes. Raises urllib.error.HTTPError for every error status."""
        # Encodes characters that are invalid in a URL; keeps those that are already encoded.
        url = urllib.parse.quote(self.uri(name).split("#")[0], safe="%/:?&=+,;@!$'()*~[]")
        headers = {"Accept-Encoding": "identity", "User-Agent": "warren"}
        if byte_range:
            headers["Range"] = f"bytes={byte_range}"
        request = urllib.request.Request(url, headers=headers, method=method)
        return urllib.request.urlopen(request, timeout=interface.READ_TIMEOUT_S)

    def info(self, name: str) -> Optional[Entry]:
        try:
            with self.request(name, "HEAD") as response:
                if urllib.parse.urlsplit(response.geturl()).path.endswith("/"):  # servers redirect a folder's name to the name with a slash
                    return Entry(name, 0, "", True)
                length = response.headers.get("Content-Length", "")
                if length.isdigit():
                    return Entry(name, int(length), _tag(response.headers), False)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                return None
            if error.code not in (400, 403, 405, 501):  # the server may refuse HEAD only: signed URLs are often valid for GET alone
                raise
        try:
            with self.request(name, "GET", "0-0") as response:
                total = re.match(r"bytes 0-0/(\d+)$", response.headers.get("Content-Range", ""))
                if response.status == 206 and total:
                    return Entry(name, int(total.group(1)), _tag(response.headers), False)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # the status for an empty file, which has no first byte
                return Entry(name, 0, _tag(error.headers), False)
            raise
        raise Changed(f"{shown(self.uri(name))}: the server does not report its size, neither for HEAD nor for a byte range. "
                      f"{_ADVICE}")

    def open(self, name: str) -> Handle:
        return _HttpHandle(self, name)
