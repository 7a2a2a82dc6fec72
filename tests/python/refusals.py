"""What workers of tests share: calls that all ranks refuse alike."""
from warren.data import _peers


def refused(kind, said, function, *arguments, **more):
    """By all ranks, in the same words."""
    try:
        function(*arguments, **more)
    except kind as error:
        words = str(error)
    else:
        raise SystemExit(f"not refused: {said}")
    assert said in words, words
    peers = _peers.current()
    assert peers.allgather(words) == [words] * peers.world, words
