"""Reads the code blocks of a Markdown page. The comment before a block says how to use it; readers of the page do not see the comments.

    <!-- run -->                    console: bash runs the commands after "$ " in order, in the page's own folder; the output of each
                                    is compared with the lines below it. sh: each line is a command. python: the block is run.
    <!-- run, any order -->         like "run", but the lines of output may be in any order, like those of several workers
    <!-- run, exit 3 -->            like "run", but the command must fail with this exit code
    <!-- run in a new system -->    like "run", but only in from_nothing, because the command installs something
    <!-- file train.py -->          the block is written to this file, for later commands
    <!-- not run: REASON -->        the block is ignored
    <!-- before: COMMAND -->        stands alone: a command that the page does not show
    <!-- after laptop.md -->        stands alone: the reader has read that page of the same folder and has its files; in a new
                                    system, also the software it installs
    <!-- run on ssh -->             like "run", but in the test of that cluster, clusters_test.py
    <!-- page runs on ssh -->       stands alone: "run on ssh" for all blocks of the page that are run. With "Debian's packages", they
                                    are run on this machine with Debian's Python.
    <!-- any number: took 0.8 s; pid 4711 -->
                                    before a block, with its other marks: the numbers in these pieces of its expected output, such
                                    as times, ids and ports, differ from run to run, and so do the units ns, us, ms and s after them
    <!-- within 5 %: loss 0.0012 -->, <!-- within 0.01: 0.53 -->
                                    likewise for numbers that differ by at most this much, relative to the page's number or
                                    absolutely

In expected output, a number matches an equal one in any notation (1,000 and 1000, 1e-05 and 0.00001), "now" and
"3 seconds ago" match each other, "..." matches any text, and a line "..." matches any number of lines.
"""

import dataclasses
import math
import pathlib
import re
from typing import Iterator, List, Optional, Sequence, Tuple

#: Languages of the blocks that a reader might run.
RUNNABLE = ("bash", "console", "python", "sh", "shell")
MARK = re.compile(r"\s*<!-- (run|file|not run|before|after|page runs on|any number|within)\b(.*?) -->\s*")
FENCE = re.compile(r"( *)```([a-z-]*)\s*")
# The hyphen of "python3-6gc4m" is not a minus sign, and the commas of "1,2,3" do not separate thousands.
NUMBER = re.compile(r"(?:(?<!\w)-)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?")
#: The unit after a number that is a time.
UNIT = re.compile(r" (ns|us|ms|s)\b")
#: The times that `warren jobs` prints for something that has just happened.
MOMENT = re.compile(r"\bnow\b|\b\d+ seconds? ago\b")
#: A line of output that is ignored, since it depends on timing: only a job that took at least 10 s prints it, at its end.
PASSING = re.compile(r"dmlc-submit: rank \d+ made the others wait .*")
LIST_ITEM = re.compile(r"\s*([-*]|\d+\.) ")


@dataclasses.dataclass(frozen=True)
class Allowance:
    """Printed numbers may differ from those in `piece`, a part of an expected line, by at most `most`, which is relative to the expected
    number if `is_relative`."""
    piece: str
    most: float = math.inf
    is_relative: bool = False

    def allows(self, expected: float, printed: float) -> bool:
        return abs(printed - expected) <= self.most * (abs(expected) if self.is_relative else 1)


@dataclasses.dataclass
class Block:
    """A code block. `kind` is the beginning of its mark, or "" without a mark; `line` is the line number of its fence, from 1."""
    line: int
    language: str
    text: str
    kind: str = ""
    rest: str = ""
    allowances: Tuple[Allowance, ...] = ()

    @property
    def any_order(self) -> bool:
        return "any order" in self.rest

    @property
    def in_a_new_system(self) -> bool:
        return "in a new system" in self.rest

    @property
    def place(self) -> str:
        """The place that the block's own mark names, or ""."""
        found = re.search(r"\bon ([\w' ]+)", self.rest)
        return found[1] if found else ""

    @property
    def code(self) -> int:
        found = re.search(r"exit (\d+)", self.rest)
        return int(found[1]) if found else 0


@dataclasses.dataclass
class Command:
    """A command of a block, including its continuation lines, and the output that the page shows for it."""
    line: int
    text: str
    expected: List[str]


def blocks(text: str) -> Iterator[Block]:
    """Yields the blocks in page order. A mark that stands alone is a block without a language. Raises ValueError if an allowance is
    malformed or does not match its block."""
    kind, rest = "", ""
    allowances: List[Allowance] = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        mark, fence = MARK.fullmatch(line), FENCE.fullmatch(line)
        if mark and mark[1] in ("any number", "within"):
            allowances += allowed(number, mark[1], mark[2])
        elif mark:
            kind, rest = mark[1], mark[2].strip(" :,")
            if kind in ("before", "after", "page runs on"):
                yield Block(number, "", rest, kind)
                kind, rest = "", ""
        elif fence:
            inside = []
            for _, line in lines:
                if line.strip() == "```":
                    break
                inside.append(line.removeprefix(fence[1]))
            for allowance in allowances:
                if not any(words(allowance.piece) in words(line) for line in inside):
                    raise ValueError(f"line {number}: the block has no {allowance.piece!r}, whose numbers are said to differ")
            yield Block(number, fence[2], "\n".join(inside) + "\n", kind, rest, tuple(allowances))
            kind, rest, allowances = "", "", []
        elif line.strip():
            kind, rest, allowances = "", "", []


def allowed(number: int, kind: str, rest: str) -> List[Allowance]:
    """The allowances in an "any number" or "within" mark. Raises ValueError if the mark is malformed."""
    most, colon, pieces = rest.partition(":")
    amount = re.fullmatch(r" ([\d.]+)( ?%)?", most)
    listed = [piece.strip() for piece in pieces.split("; ")]
    if not colon or (amount is None) != (kind == "any number") or not all(NUMBER.search(piece) for piece in listed):
        raise ValueError(f"line {number}: expected '<!-- any number: 0.8 s; pid 7 -->' or '<!-- within 5 %: 0.0012 -->'")
    if amount is None:
        return [Allowance(piece) for piece in listed]
    return [Allowance(piece, float(amount[1]) / (100 if amount[2] else 1), amount[2] is not None) for piece in listed]


def indented_blocks(text: str) -> Iterator[int]:
    """Yields the line numbers at which code without a fence, and thus without a language, begins: after an empty line, indented by four
    spaces, or by six in lists."""
    fenced, in_list, before = False, False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.fullmatch(line):
            fenced = not fenced
        elif not fenced and line.strip():
            if LIST_ITEM.match(line):
                in_list = True
            elif not line.startswith(" "):
                in_list = False
            deep = 6 if in_list else 4
            if line.startswith(" " * deep) and not before.strip() and not LIST_ITEM.match(line):
                yield number
        before = line


def commands(block: Block) -> List[Command]:
    found: List[Command] = []
    going_on = False
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if going_on:
            found[-1].text += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(number, line[2:], []))
        elif block.language == "sh":
            if line.partition("#")[0].strip():
                found.append(Command(number, line, []))
        elif found:
            found[-1].expected.append(line)
        else:
            raise ValueError(f"line {number}: a console block begins with '$ '")
        going_on = bool(found) and not found[-1].expected and found[-1].text.endswith("\\")
    return found


def words(line: str) -> str:
    """The line normalized for comparison, with single blanks, and "now" for every recent time."""
    return " ".join(MOMENT.sub("now", line).split())


def plain(number: str) -> str:
    """The number normalized for comparison, so that equal numbers have the same text."""
    digits = number.replace(",", "")
    value = float(digits)
    if re.fullmatch(r"-?\d+", digits):
        return str(int(digits))
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def agrees(expected: str, line: str, allowances: Sequence[Allowance] = ()) -> bool:
    """Whether the printed `line` matches the `expected` one."""
    expected, line = words(expected), words(line)
    pattern, place = "", 0
    differing: List[Tuple[Allowance, float]] = []
    for number in NUMBER.finditer(expected):
        pattern += anything(expected[place:number.start()])
        place = number.end()
        allowance = next((one for one in allowances if covers(one, expected, number)), None)
        if allowance is None:
            pattern += rf"(?<!\d)(?<!(?<!\w)-){re.escape(plain(number[0]))}(?!\d)"
        else:
            pattern += f"({NUMBER.pattern})"
            differing.append((allowance, float(plain(number[0]))))
            unit = UNIT.match(expected, place) if math.isinf(allowance.most) else None
            if unit:
                pattern += " (?:ns|us|ms|s)"
                place = unit.end()
    found = re.fullmatch(pattern + anything(expected[place:]), NUMBER.sub(lambda one: plain(one[0]), line))
    return found is not None and all(allowance.allows(number, float(printed))
                                     for (allowance, number), printed in zip(differing, found.groups()))


def anything(text: str) -> str:
    """A regular expression for the text, in which "..." matches anything."""
    return ".*".join(re.escape(part) for part in re.split(r"\.\.\.|…", text))


def covers(allowance: Allowance, line: str, number: "re.Match[str]") -> bool:
    """Whether the number lies in a part of the line that matches the allowance's piece."""
    return any(piece.start() <= number.start() and number.end() <= piece.end()
               for piece in re.finditer(re.escape(words(allowance.piece)), line))


def missing(expected: List[str], printed: List[str], any_order: bool, allowances: Sequence[Allowance] = ()) -> Optional[str]:
    """Describes the first expected line that was not printed, or the first printed line that was not expected. None if all match, or if
    no output is expected."""
    expected, printed = ([line for line in lines if line.strip() and not PASSING.fullmatch(line)] for lines in (expected, printed))
    if not expected:
        return None
    anything = any_order and "..." in expected
    if any_order:
        left = list(printed)
        for line in (line for line in expected if line != "..."):
            found = next((one for one in left if agrees(line, one, allowances)), None)
            if found is None:
                return f"not printed: {line}"
            left.remove(found)
        return None if anything or not left else f"not expected: {left[0]}"
    # All possible counts of printed lines that the expected lines so far match.
    ends = {0}
    for line in expected:
        if line == "...":
            ends = set(range(min(ends), len(printed) + 1))
            continue
        next_ends = {end + 1 for end in ends if end < len(printed) and agrees(line, printed[end], allowances)}
        if not next_ends:
            place = min(ends)
            return f"expected: {line}\nprinted:  {printed[place]}" if place < len(printed) else f"not printed: {line}"
        ends = next_ends
    return None if len(printed) in ends else f"not expected: {printed[max(ends)]}"


def pages(source: pathlib.Path) -> List[pathlib.Path]:
    """The pages whose blocks must all have a mark."""
    kinds = ("tutorials", "how-to", "migration")
    return [source / "README.md", source / "docs/reference/exit-codes.md",
            *(page for kind in kinds for page in sorted((source / "docs" / kind).glob("*.md")))]
