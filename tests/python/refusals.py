"""Shared by the test workers: checks calls that every rank refuses with the same message."""
from warren.data import _peers


def refused(kind, said, function, *arguments, **more):
    """Checks that all ranks refuse the call, with the same message."""
    try:
        function(*arguments, **more)
    except kind as error:
        words = str(error)
    else:
        raise SystemExit(f"not refused: {said}")
    assert said in words, words
    peers = _peers.current()
    assert peers.allgather(words) == [words] * peers.world, words
