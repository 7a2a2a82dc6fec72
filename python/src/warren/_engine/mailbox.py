"""The mailbox for tagged messages, made by `Communicator.mailbox`."""
import ctypes
from typing import Any, Optional, TypeVar

from numpy.typing import ArrayLike

from warren._engine import c_api as _c
from warren._engine.calls import Array, Handle, c_int_of, call_options, check_result, contiguous, free_dropped

T = TypeVar("T")


class Mailbox:
    """A mailbox for tagged messages, which are independent of a communicator's calls and not ordered relative to them. Any number of
    messages may be pending at once; those from one rank to another with the same tag keep their order. Made by `Communicator.mailbox`;
    ended by `free`, or when no longer referenced. Thread-safe."""

    ANY_RANK = -1

    def __init__(self, rank: int, size: int, handle: int) -> None:
        self.rank, self.size = rank, size
        self._mailbox: Optional[int] = handle

    def send(self, data: ArrayLike, to: int, tag: int = 0, timeout: Optional[float] = None) -> Handle[None]:
        """Sends a message to a rank. The operation ends when the array may be reused: for a long message, only once the other rank receives
        it."""
        array = contiguous(data, "send")
        return self.send_bytes(array.ctypes.data, array.nbytes, to, tag, timeout, array)

    def recv(self, out: Array, source: int = ANY_RANK, tag: int = 0, timeout: Optional[float] = None) -> Handle[Array]:
        """Receives a message from a rank, or from any rank. If the message does not have the length of `out`, only this receive fails."""
        check_result(out, "recv")
        return self.recv_bytes(out.ctypes.data, out.nbytes, source, tag, timeout, out)

    # Sending and receiving `count` bytes of memory at address `at`. Its `owner` is kept alive until the operation has ended.

    def send_bytes(self, at: int, count: int, to: int, tag: int, timeout: Optional[float], owner: Any) -> Handle[None]:
        free_dropped()
        handle = _c.handle(_c.LIB.WarrenMailboxSend, self._open(), at, count, c_int_of(to, "rank"), tag,
                           ctypes.byref(call_options(None, timeout)))
        return Handle(handle, None, (owner,))

    def recv_bytes(self, at: int, count: int, source: int, tag: int, timeout: Optional[float], owner: T,
                   found: Any = None) -> Handle[T]:
        """`found`: a ctypes.c_int that receives the sender's rank."""
        free_dropped()
        handle = _c.handle(_c.LIB.WarrenMailboxRecv, self._open(), at, count, c_int_of(source, "rank"), tag,
                           None if found is None else ctypes.byref(found), ctypes.byref(call_options(None, timeout)))
        return Handle(handle, owner, (owner, found))

    def _open(self) -> int:
        if self._mailbox is None:
            raise ValueError("this mailbox was freed")
        return self._mailbox

    def free(self) -> None:
        """Ends the mailbox; pending operations fail."""
        mailbox, self._mailbox = self._mailbox, None
        if mailbox is not None:
            _c.LIB.WarrenMailboxFree(mailbox)

    def __del__(self) -> None:
        if getattr(self, "_mailbox", None) is not None and _c is not None and _c.LIB is not None:
            self.free()
