"""Text from files, hosts and users as it may stand on a terminal."""
import re

#: C0 and C1 control characters, of which escape sequences are made; lone surrogates, which cannot be encoded; and the marks that
#: change the direction of the text that follows.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""One line: whatever a terminal would obey as \xNN or \uNNNN, and everything else as it is."""
    return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}" if ord(found[0]) < 0x100 else f"\\u{ord(found[0]):04x}", text)


def printable_lines(text: str) -> str:
    """The same of a text that may have several lines."""
    return "\n".join(map(printable, text.split("\n")))
