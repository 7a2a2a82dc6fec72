"""The source folders form layers: no folder includes files of a folder above it. Also, no two headers define a type of the same name."""

import os
import re
import unittest
from pathlib import Path

SOURCE = Path(os.environ["WARREN_SOURCE"])
# The folders that each top-level folder may include, in addition to itself.
TOP = {
    "cli": set(),
    "posix": set(),
    "data": {"cli", "posix"},
    "wire": {"posix"},
    "tls": {"posix", "wire"},
    "tracker": {"cli", "posix", "wire", "tls"},
    "rabit_engine": {"posix", "wire", "tls"},
    "submit": {"cli", "posix", "wire", "tls", "tracker"},
}


def includes(folder):
    """Yields (file, included path) for each quoted include with a folder in its path, in all files of this folder. The file is relative to
    the top of the tree."""
    for path in sorted((SOURCE / folder).rglob("*")):
        if path.suffix in (".h", ".cc", ".cu"):
            for include in re.findall(r'^#include "([^"]+/[^"]+)"', path.read_text(), re.MULTILINE):
                yield path.relative_to(SOURCE), Path(include)


def definitions(folder):
    """Yields (file, type name with its namespaces) for the types defined in the headers of a folder."""
    for path in sorted((SOURCE / folder).rglob("*.h")):
        spaces = []
        for line in path.read_text().splitlines():
            if opened := re.match(r"(?:inline )?namespace ([\w:]*) ?\{", line):
                spaces.append(opened.group(1))
            elif line.startswith("}  // namespace") or line.startswith("}  // inline namespace"):
                spaces.pop()
            elif defined := re.match(r"(?:class|struct|enum class|enum) (\w+)(?: final)?(?: ?:(?!:) ?[^;]*)? ?\{", line):
                yield path.relative_to(SOURCE), "::".join([*filter(None, spaces), defined.group(1)])


def engine_floors():
    """The folders of rabit_engine from the bottom up, in the order in which they are built."""
    text = (SOURCE / "rabit_engine/CMakeLists.txt").read_text()
    floors = re.search(r"foreach\(folder ([a-z ]+)\)", text).group(1).split()
    return [*floors, "xgboost", "api"]


def launcher_rooms():
    """The folders of submit from the bottom up, in the order in which they are built."""
    text = (SOURCE / "submit/CMakeLists.txt").read_text()
    rooms = re.search(r"set\(rooms ([a-z/ ]+)\)", text).group(1).split()
    return list(dict.fromkeys(room.split("/")[0] for room in rooms))


class IncludesTest(unittest.TestCase):
    def test_top_level_folders_know_only_those_below(self):
        seen = 0
        for folder, below in TOP.items():
            for path, include in includes(folder):
                if include.parts[0] in TOP or (SOURCE / include.parts[0]).is_dir():
                    seen += 1
                    self.assertIn(include.parts[0], below | {folder}, f"{path} includes {include}")
        self.assertGreater(seen, 500)

    def includes_upwards(self, top, folders, outside):
        """Fails if a folder of `top` includes one that is above it in `folders`, or is not in them. `outside`: what has no place in them.
        Returns the number of includes."""
        self.assertEqual({path.name for path in (SOURCE / top).iterdir()}, {*folders, *outside, "CMakeLists.txt"})
        seen = 0
        for path, include in includes(top):
            if path.parts[1] not in outside and include.parts[0] == top:
                seen += 1
                self.assertLessEqual(folders.index(include.parts[1]), folders.index(path.parts[1]), f"{path} includes {include}")
        return seen

    def test_no_folder_of_the_engine_includes_upwards(self):
        self.assertGreater(self.includes_upwards("rabit_engine", engine_floors(), ["include"]), 200)

    def test_no_room_of_the_launcher_includes_one_above_it(self):
        rooms = launcher_rooms()
        self.assertEqual(rooms, [folder for folder in rooms if (SOURCE / "tests/submit" / folder).is_dir()])
        self.assertGreater(self.includes_upwards("submit", rooms, ["main.cc"]), 300)

    def test_no_two_headers_define_a_type_of_one_name(self):
        """If two headers defined the same type differently, the linker would silently use the inline functions of one for both."""
        where = {}
        for folder in TOP:
            for path, name in definitions(folder):
                self.assertIn(where.setdefault(name, path), (path,), f"{name} is in {path}, too")
        self.assertGreater(len(where), 300)

    def test_a_folder_does_not_include_the_folders_in_it(self):
        """Only the reverse is allowed: for example, transport/tcp includes transport, but transport does not include transport/tcp."""
        for path, include in includes("rabit_engine"):
            is_below = include.parent != path.parent and include.is_relative_to(path.parent)
            self.assertFalse(include.parts[0] == "rabit_engine" and is_below, f"{path} includes {include}")


if __name__ == "__main__":
    unittest.main()
