"""Shards across processes: one thread in each process serves the shards of all arrays, and clients send it requests as messages.

Data flow: a client numbers its requests. It sends the server a header (HEADER: the array, the action, the number) and then, for a send, the
elements directly from the caller's memory, with a tag that is unique to this request. The server's thread waits for headers from any rank,
and handles them one after the other: it receives the elements into a reusable buffer, and the shard (warren._parameter_server.shards)
decides which requests are answered. The answer to a send is a number, the length of the error text (0 for success), followed by that text;
the answer to a receive is the elements. The client posts the receive of the number or the elements before it sends the header, and the
server does not wait for its answers to be received. So neither depends on the other's threads, and long messages of many clients cannot
deadlock. A shard of the same process is called directly in the client's thread, under the shard's lock.

Headers between two processes keep their order, and requests are handled one at a time: this defines the order of a client's requests to a
shard, and makes each request atomic."""
import ctypes
import itertools
import sys
import threading
import traceback
from typing import Any, Dict, List, Optional, Protocol, Sequence, Tuple

import numpy as np

from warren._parameter_server.shards import RULE_NAME_BYTES, Array, Part, Reply, Request, Shard, described
from warren.collectives import Communicator, Mailbox
from warren.collectives import Handle as Operation

HEADER = np.dtype([("array", "i8"), ("action", "i8"), ("number", "i8"), ("count", "i8"), ("scale", "f8"),
                   ("rule", f"S{RULE_NAME_BYTES}")])
_SEND, _RECEIVE = range(2)
_HEADERS = 0  # the tag of headers

#: The timeout of a server that waits for requests: in effect infinite, even if rabit_timeout=1 limits the time of other operations.
_FOR_EVER_S = 1e8


def _elements_tag(number: int) -> int:
    return 2 * number + 2


def _reply_tag(number: int) -> int:
    return 2 * number + 3


def scaled(incoming: Array, scale: float) -> Array:
    """Multiplies the array by `scale`, in place, and returns it."""
    if scale != 1:
        incoming *= incoming.dtype.type(scale)
    return incoming


class Pending(Protocol):
    """A pending request."""

    def wait(self) -> None:
        """Waits until the request has ended. Raises RuntimeError if it failed."""

    def done(self) -> bool:
        """Whether the request has ended, successfully or not."""


class _Here:
    """A request of this process to one of its own shards."""

    def __init__(self, out: Optional[Array]) -> None:
        self._out, self._ended = out, threading.Event()
        self._error: Optional[str] = None

    def answer(self, reply: Reply) -> None:
        if self._out is not None and reply.values is not None:
            self._out[:] = reply.values
        self._error = reply.error
        self._ended.set()

    def fail(self, error: str) -> None:
        self._error = self._error or error
        self._ended.set()

    def wait(self) -> None:
        self._ended.wait()
        if self._error is not None:
            raise RuntimeError(self._error)

    def done(self) -> bool:
        return self._ended.is_set()


class _Sent:
    """A send to another process: its messages, and the answer."""

    def __init__(self, messages: Sequence["Operation[Any]"], answer: "Operation[Any]", length: Array, mailbox: Mailbox,
                 server: int, number: int) -> None:
        self._messages, self._answer, self._length = messages, answer, length
        self._mailbox, self._server, self._number = mailbox, server, number
        self._lock = threading.Lock()
        self._error: Optional[str] = None

    def wait(self) -> None:
        with self._lock:
            for message in self._messages:
                message.wait()
            self._answer.wait()
            if self._length[0] > 0:
                self._error = self._text_of(int(self._length[0]))
                self._length[0] = 0
            if self._error is not None:
                raise RuntimeError(self._error)

    def _text_of(self, length: int) -> str:
        text = np.empty(length, np.uint8)
        self._mailbox.recv(text, self._server, _reply_tag(self._number)).wait()
        return text.tobytes().decode(errors="replace")

    def done(self) -> bool:
        return self._answer.done() and all(message.done() for message in self._messages)


class _Asked:
    """A receive from another process."""

    def __init__(self, messages: Sequence["Operation[Any]"]) -> None:
        self._messages = messages

    def wait(self) -> None:
        for message in self._messages:
            message.wait()

    def done(self) -> bool:
        return all(message.done() for message in self._messages)


class _Guarded:
    """A shard, and the lock that must be held while it is used."""

    def __init__(self, shard: Shard) -> None:
        self.shard, self.lock = shard, threading.Lock()


class ShardService:
    """Serves this process's shards, and sends requests to the other processes of a communicator. All ranks create one, and close it.
    Thread-safe."""

    def __init__(self, communicator: Communicator) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._arrays: Dict[int, _Guarded] = {}
        self._numbers = itertools.count()
        self._here: Dict[int, _Here] = {}  # this process's unanswered requests to its own shards, by number
        self._replies: List["Operation[None]"] = []  # the sends of replies that have not been waited for
        self._replies_lock = threading.Lock()
        self._buffer = np.empty(0, np.uint8)
        self._order = threading.Lock()  # held while the messages of a request are submitted
        self._end: Optional[str] = None
        self._mailbox: Optional[Mailbox] = None
        self._thread: Optional[threading.Thread] = None
        if self.size > 1:
            self._mailbox = communicator.mailbox()
            self._thread = threading.Thread(target=self._serve, name="warren parameter server", daemon=True)
            self._thread.start()

    def add(self, array: int, shard: Shard) -> None:
        """Begins to serve a shard of `array`, whose number is the same on all ranks. No rank may access the array before all ranks that serve
        it have added it."""
        self._arrays[array] = _Guarded(shard)

    def remove(self, array: int) -> None:
        """Stops serving the array. To be called when all requests for it have ended."""
        self._arrays.pop(array, None)

    def close(self) -> None:
        """Ends the service. To be called when all requests of all ranks have ended."""
        if self._mailbox is not None and self._thread is not None:
            self._mailbox.free()
            self._thread.join()

    # --- client side ---

    def send(self, array: int, part: Part, elements: Optional[Array], rule: str, scale: float = 1) -> Pending:
        """Sends elements to a part of an array. `elements` must not change until the request has ended; None if the rule needs no
        elements."""
        if part.rank == self.rank:
            request, pending = self._to_oneself(None)
            with self._arrays[array].lock:
                shard = self._arrays[array].shard
                copied = np.empty_like(shard.values) if elements is None else elements.copy()
                replies = shard.send(request, scaled(copied, scale), rule)
            self._answer(replies)
            return pending
        number, mailbox = next(self._numbers), self._open()
        count = 0 if elements is None else part.end - part.begin
        header = np.array([(array, _SEND, number, count, scale, rule.encode())], HEADER)
        length = np.zeros(1, np.int64)
        with self._order:
            answer = mailbox.recv(length, part.rank, _reply_tag(number))
            messages = [mailbox.send(header, part.rank, _HEADERS)]
            if elements is not None:
                messages.append(mailbox.send(elements, part.rank, _elements_tag(number)))
        return _Sent(messages, answer, length, mailbox, part.rank, number)

    def receive(self, array: int, part: Part, out: Array) -> Pending:
        """Requests a part of an array. Fills `out`, which must not be used until the request has ended."""
        if part.rank == self.rank:
            request, pending = self._to_oneself(out)
            with self._arrays[array].lock:
                replies = self._arrays[array].shard.receive(request)
            self._answer(replies)
            return pending
        number, mailbox = next(self._numbers), self._open()
        header = np.array([(array, _RECEIVE, number, part.end - part.begin, 1, b"")], HEADER)
        with self._order:
            return _Asked([mailbox.recv(out, part.rank, _reply_tag(number)), mailbox.send(header, part.rank, _HEADERS)])

    def _to_oneself(self, out: Optional[Array]) -> Tuple[Request, _Here]:
        number = next(self._numbers)
        pending = self._here[number] = _Here(out)
        if self._end is not None:
            self._fail_here(self._end)
        return Request(self.rank, number), pending

    def _open(self) -> Mailbox:
        assert self._mailbox is not None
        return self._mailbox

    # --- server side ---

    def _serve(self) -> None:
        try:
            while True:
                self._take(*self._next())
                self._forget_replies()
        except (RuntimeError, ValueError) as error:  # from the mailbox: a rank was lost, or the mailbox was freed
            self._fail_here(str(error))
        except BaseException:  # pylint: disable=broad-except
            print(f"rank {self.rank}: its parameter server thread failed:", file=sys.stderr)
            traceback.print_exc()
            self._open().free()  # notifies the other ranks
            self._fail_here(f"rank {self.rank}: its parameter server thread failed")

    def _next(self) -> Tuple[int, Any]:
        header, source = np.zeros(1, HEADER), ctypes.c_int()
        self._open().recv_bytes(header.ctypes.data, header.nbytes, Mailbox.ANY_RANK, _HEADERS, _FOR_EVER_S, header, source).wait()
        return source.value, header[0]

    def _take(self, client: int, header: Any) -> None:
        request = Request(client, int(header["number"]))
        guarded = self._arrays[int(header["array"])]
        if header["action"] == _RECEIVE:
            with guarded.lock:
                replies = guarded.shard.receive(request)
        else:
            elements = self._elements(request, int(header["count"]), guarded.shard.values)
            try:
                with guarded.lock:
                    replies = guarded.shard.send(request, scaled(elements, float(header["scale"])), header["rule"].decode())
            except Exception as error:  # pylint: disable=broad-except
                replies = [Reply(request, error=described(f"rank {self.rank}: a send from rank {client} failed", error))]
        self._answer(replies)

    def _elements(self, request: Request, count: int, values: Array) -> Array:
        """Returns the elements sent by the client; arbitrary elements if it sent none."""
        if self._buffer.nbytes < values.nbytes:
            self._buffer = np.empty(values.nbytes, np.uint8)
        elements = self._buffer[:values.nbytes].view(values.dtype)
        if count > 0:
            self._open().recv(elements, request.client, _elements_tag(request.number)).wait()
        return elements

    def _answer(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            if reply.request.client == self.rank:
                pending = self._here.pop(reply.request.number, None)
                if pending is not None:  # it is None if the service has ended in the meantime
                    pending.answer(reply)
            else:
                self._tell(reply)

    def _tell(self, reply: Reply) -> None:
        client, tag = reply.request.client, _reply_tag(reply.request.number)
        if reply.values is not None:
            messages = [reply.values]
        elif reply.error is None:
            messages = [np.zeros(1, np.int64)]
        else:
            text = np.frombuffer(reply.error.encode(), np.uint8)
            messages = [np.array([len(text)], np.int64), text]
        sent = [self._open().send(message, client, tag) for message in messages]
        with self._replies_lock:
            self._replies += sent

    def _forget_replies(self) -> None:
        with self._replies_lock:
            under_way = [reply for reply in self._replies if not reply.done()]
            ended, self._replies = [reply for reply in self._replies if reply not in under_way], under_way
        for reply in ended:
            reply.wait()  # frees its memory

    def _fail_here(self, error: str) -> None:
        """Fails this process's requests to its own shards, which would otherwise wait forever."""
        self._end = error
        for number in list(self._here):
            pending = self._here.pop(number, None)
            if pending is not None:
                pending.fail(error)
