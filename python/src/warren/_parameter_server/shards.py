"""The logic of parameter servers, without threads and messages: the placement of elements, the effect of a rule on a shard, and the answers
to requests.

A shard is one server's part of an array: flat and contiguous. It receives the clients' requests one after the other. For each request, it
returns the replies to send now, which may include replies to earlier requests. `RuleShard` applies each message immediately by its rule.
`UpdateShard` and `RoundShard` implement the asynchronous and the synchronous mode of MXNet's servers (kvstore_dist_server.h of apache/mxnet):
they apply an updater immediately, or once the messages of all workers have arrived."""
import zlib
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from numpy.typing import NDArray

Array = NDArray[Any]

#: A function (shard, incoming) that changes the shard in place by the incoming elements.
Rule = Callable[[Array, Array], None]

RULE_NAME_BYTES = 64


class Part(NamedTuple):
    """The elements from `begin` up to, but not including, `end` of a flat array, on one rank."""

    rank: int
    begin: int
    end: int


def spread(count: int, ranks: Sequence[int]) -> List[Part]:
    """Returns contiguous parts on these ranks, in their order, whose lengths differ by at most one, the longer ones first. Ranks whose part
    would be empty are omitted."""
    length, longer = divmod(count, len(ranks))
    parts, begin = [], 0
    for place, rank in enumerate(ranks):
        end = begin + length + (place < longer)
        if end > begin:
            parts.append(Part(rank, begin, end))
        begin = end
    return parts


def place(key: Union[str, int], count: int, ranks: Sequence[int], bound: int) -> List[Part]:
    """Returns the parts of a key's value: it is stored on one rank, chosen by the key alone, or, if it has at least `bound` elements,
    spread over all ranks."""
    if count >= bound:
        return spread(count, ranks)
    return spread(count, [ranks[zlib.crc32(str(key).encode()) % len(ranks)]])


# --- rules ---

def _add(shard: Array, incoming: Array) -> None:
    shard += incoming


def _copy(shard: Array, incoming: Array) -> None:
    shard[:] = incoming


def _zero(shard: Array, _: Array) -> None:
    shard[:] = 0


_rules: Dict[str, Rule] = {"add": _add, "copy": _copy, "zero": _zero}


def register_rule(name: str, rule: Rule) -> None:
    """Registers a rule; to be called on all ranks, before any of them uses it in a send. `rule(shard, incoming)` changes the flat array
    `shard` in place. It may run in another thread, and may change `incoming`, which nothing else uses until it returns. Raises ValueError
    for an invalid name or one that another rule has, and TypeError if `rule` cannot be called."""
    if not isinstance(name, str) or not 0 < len(name.encode()) <= RULE_NAME_BYTES or "\0" in name:
        raise ValueError(f"the name of a rule must be a str of 1 to {RULE_NAME_BYTES} bytes, not {name!r}")
    if not callable(rule):
        raise TypeError(f"the rule '{name}' must be a function of a shard and the received values, not {type(rule).__name__}")
    if _rules.setdefault(name, rule) is not rule:
        raise ValueError(f"there is a rule '{name}' already; choose another name")


def rule_of(name: str, rank: int) -> Rule:
    rule = _rules.get(name)
    if rule is None:
        raise ValueError(f"rank {rank} has no rule '{name}', only {', '.join(sorted(_rules))}; call register_rule on all ranks "
                         "before any of them uses it")
    return rule


def check_numbers(dtype: Any, what: str) -> None:
    """Raises TypeError unless elements of the type can be added and scaled."""
    if dtype.kind not in "biufc":
        raise TypeError(f"{what} holds numbers, not elements of {dtype}")


def described(what: str, error: BaseException) -> str:
    return f"{what}: {type(error).__name__}: {error}"


# --- shards ---

class Request(NamedTuple):
    """A request of a client; each client numbers its own requests."""

    client: int
    number: int


class Reply(NamedTuple):
    """The answer to a request: a copy of the values if the request asked for them; an error if it failed."""

    request: Request
    values: Optional[Array] = None
    error: Optional[str] = None


class Shard(Protocol):
    """Handles one request at a time."""

    values: Array

    def send(self, request: Request, incoming: Array, rule: str) -> List[Reply]:
        """`incoming` may be changed, but not used after this returns."""

    def receive(self, request: Request) -> List[Reply]:
        ...


class RuleShard:
    """Applies each message immediately, by the rule that it names."""

    def __init__(self, values: Array, rank: int) -> None:
        self.values, self._rank = values, rank

    def send(self, request: Request, incoming: Array, rule: str) -> List[Reply]:
        try:
            rule_of(rule, self._rank)(self.values, incoming)
        except (Exception, SystemExit) as error:  # pylint: disable=broad-except
            return [Reply(request, error=described(f"rank {self._rank}: the rule '{rule}' failed for a send from rank {request.client}",
                                                   error))]
        return [Reply(request)]

    def receive(self, request: Request) -> List[Reply]:
        return [Reply(request, self.values.copy())]


#: A function (values, pushed) that changes the values in place by the pushed ones.
Update = Callable[[Array, Array], None]


class UpdateShard:
    """Applies each message immediately, with the updater."""

    def __init__(self, values: Array, what: str, update: Update) -> None:
        """`what` prefixes errors of the updater."""
        self.values, self._what, self._update = values, what, update

    def send(self, request: Request, incoming: Array, _: str) -> List[Reply]:
        return [Reply(request, error=_failure_of(self._update, self.values, incoming, self._what))]

    def receive(self, request: Request) -> List[Reply]:
        return [Reply(request, self.values.copy())]


class RoundShard:
    """The n-th messages of all workers form a round: they are added up in rank order, so that the bits do not depend on the order of
    arrival, and applied once. A worker's message is answered when its round is complete; a worker's request for values waits for the rounds
    of that worker's earlier messages."""

    def __init__(self, values: Array, what: str, update: Update, num_workers: int) -> None:
        self.values, self._what, self._update = values, what, update
        self._pushed: List[Deque[Tuple[Request, Array]]] = [deque() for _ in range(num_workers)]
        self._num_pushed = [0] * num_workers
        self._num_rounds = 0
        self._pulls: List[Tuple[int, Request]] = []  # each with the number of rounds for which it waits

    def send(self, request: Request, incoming: Array, _: str) -> List[Reply]:
        self._pushed[request.client].append((request, incoming.copy()))
        self._num_pushed[request.client] += 1
        replies = []
        while all(self._pushed):
            replies += self._round()
        return replies

    def receive(self, request: Request) -> List[Reply]:
        self._pulls.append((self._num_pushed[request.client], request))
        return self._ready()

    def _round(self) -> List[Reply]:
        requests, values = zip(*(pushed.popleft() for pushed in self._pushed))
        total = values[0]
        for value in values[1:]:
            total += value
        failure = _failure_of(self._update, self.values, total, self._what)
        self._num_rounds += 1
        return [Reply(request, error=failure) for request in requests] + self._ready()

    def _ready(self) -> List[Reply]:
        ready = [request for rounds, request in self._pulls if rounds <= self._num_rounds]
        self._pulls = [pull for pull in self._pulls if pull[0] > self._num_rounds]
        return [Reply(request, self.values.copy()) for request in ready]


def _failure_of(update: Update, values: Array, incoming: Array, what: str) -> Optional[str]:
    try:
        update(values, incoming)
        return None
    except (Exception, SystemExit) as error:  # pylint: disable=broad-except
        return described(what, error)
