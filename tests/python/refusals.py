"""Shared by the test workers: checks calls that are refused."""


def refuses(kind, said, function, *arguments, **more):
    """Checks that the call raises an error of this kind with these words. Returns the error."""
    try:
        function(*arguments, **more)
    except kind as error:
        assert said in str(error), (said, error)
        return error
    raise AssertionError(f"no error, and '{said}' was expected")


def refused(kind, said, function, *arguments, **more):
    """Checks that all ranks refuse the call, with the same message."""
    from warren.data import _peers  # pylint: disable=import-outside-toplevel  # not all workers read data

    words = str(refuses(kind, said, function, *arguments, **more))
    peers = _peers.current()
    assert peers.allgather(words) == [words] * peers.world, words
