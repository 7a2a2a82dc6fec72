"""Each file that `cmake --install` installs is in exactly one Debian package: its install rule names one of the packaged components."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
BUILD = pathlib.Path(os.environ["WARREN_BUILD"])
# Components that need CUDA are not packaged.
NOT_PACKAGED = {"cuda"}


def components_of(folder):
    """The components that a full install contains. Rules with EXCLUDE_FROM_ALL, such as the wheel's, are not part of it."""
    script = folder / "cmake_install.cmake"
    text = script.read_text(encoding="utf-8")
    # The second alternative is how CMake 3.22 writes the condition.
    compared = r'CMAKE_INSTALL_COMPONENT STREQUAL "([^"]+)"|"x\$\{CMAKE_INSTALL_COMPONENT\}x" STREQUAL "x([^"]+)x"'
    found = {new or old for new, old in re.findall(rf"if\((?:{compared}) OR NOT CMAKE_INSTALL_COMPONENT\)", text)}
    for below in re.findall(r'^ *include\("(.*)/cmake_install\.cmake"\)', text, re.MULTILINE):
        found |= components_of(pathlib.Path(below))
    return found


class Components(unittest.TestCase):
    def test_each_is_a_package_and_each_package_has_one(self):
        text = (SOURCE / "cmake/WarrenDebian.cmake").read_text(encoding="utf-8")
        packaged = set(re.search(r"^set\(CPACK_COMPONENTS_ALL ([^)]*)\)", text, re.MULTILINE)[1].split())
        packaged |= set(re.search(r"^foreach\(mpi ([^)]*)\)", text, re.MULTILINE)[1].split())
        installed = components_of(BUILD)
        self.assertEqual(installed - packaged - NOT_PACKAGED, set(), "install rules without a package: COMPONENT is missing or wrong")
        self.assertEqual(packaged - installed - {"python3", "openmpi", "mpich"}, set(), "packages that no install rule fills")


if __name__ == "__main__":
    unittest.main()
