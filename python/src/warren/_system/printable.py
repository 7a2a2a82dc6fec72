"""Makes text from files, hosts and users safe to print on a terminal."""
import re

#: C0 and C1 control characters, which form escape sequences; lone surrogates, which cannot be encoded; line and paragraph separators; and
#: marks that change the direction of the following text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Returns the text as one line: characters that a terminal would interpret become \xNN or \uNNNN; all others are unchanged."""
    return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}" if ord(found[0]) < 0x100 else f"\\u{ord(found[0]):04x}", text)


def printable_lines(text: str) -> str:
    """Like `printable`, for text of several lines."""
    return "\n".join(map(printable, text.split("\n")))
