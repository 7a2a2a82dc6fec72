"""The files into which several workers write their rows: a folder with a part for each worker, or one file."""
import os
import posixpath
import re
from typing import List

from warren.data._files.listing import find
from warren.data._files.names import Options, on_disk

_PART = re.compile(r"part-[0-9]+-of-[0-9]+\.\w+")


def part_name(part: int, parts: int, suffix: str) -> str:
    """The name of a part; names sort in the order of the parts."""
    digits = max(5, len(str(parts)))
    return f"part-{part:0{digits}d}-of-{parts:0{digits}d}.{suffix}"


def existing(path: str, *, whole: bool, storage_options: Options = None) -> List[str]:
    """Returns the names of the files at `path` that an earlier run may have written: all if `whole`, else the parts, sorted."""
    place = on_disk(path)
    if place is not None:
        if whole:
            return [os.path.basename(place)] if os.path.lexists(place) else []
        names = os.listdir(place) if os.path.isdir(place) else []
    else:
        try:
            names = [posixpath.basename(file.uri) for file in find([path], storage_options=storage_options)]
        except FileNotFoundError:
            return []
    return names if whole else sorted(name for name in names if _PART.fullmatch(name))
