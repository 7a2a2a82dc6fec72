"""How the configure step handles missing libraries (cmake/WarrenFetch.cmake, cmake/WarrenParts.cmake), in small projects and without a
network: they are found, fetched from a mirror or refused, or an error names the packages to install."""

import functools
import hashlib
import http.server
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
FETCH = SOURCE / "cmake/WarrenFetch.cmake"
# A library's source archive; its own CMakeLists.txt must not be run.
LIBRARY = {"include/sample.h": "#define SAMPLE 17\n", "CMakeLists.txt": 'message(FATAL_ERROR "its own build files were run")\n'}
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES NONE)
include({source}/cmake/WarrenFetch.cmake)
include({source}/cmake/WarrenParts.cmake)
warren_fetchable(Sample 1.2 https://mirror.invalid/sample-1.2.tar.gz {sha256} TARGETS Sample::sample HEADERS include DEFINE WITH_SAMPLE)
{commands}
"""
USED = """warren_require(Sample 1 libsample-dev sample)
warren_print_parts()
get_property(compiled_in GLOBAL PROPERTY WARREN_COMPILED_IN)
message(STATUS "compiled in: ${compiled_in}")
get_target_property(library Sample::sample INTERFACE_LINK_LIBRARIES)
get_target_property(folder ${library} INTERFACE_INCLUDE_DIRECTORIES)
file(READ ${folder}/sample.h text)
message(STATUS "the header: ${text}")
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Fetching(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.mirror = self.root / "mirror"
        library = self.root / "sample-1.2"
        for name, text in LIBRARY.items():
            (library / name).parent.mkdir(parents=True, exist_ok=True)
            (library / name).write_text(text)
        self.mirror.mkdir()
        self.archive = self.mirror / "sample-1.2.tar.gz"
        with tarfile.open(self.archive, "w:gz") as archive:
            archive.add(library, "sample-1.2")
        self.sha256 = hashlib.sha256(self.archive.read_bytes()).hexdigest()

    def configure(self, commands, *options, works=True):
        """Runs CMake; returns its output as one line."""
        tree = self.root / "tree"
        tree.mkdir(exist_ok=True)
        (tree / "CMakeLists.txt").write_text(PROJECT.format(source=SOURCE, sha256=self.sha256, commands=commands))
        done = subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", self.root / "build", *options], capture_output=True, text=True, check=False)
        said = " ".join((done.stdout + done.stderr).split())
        self.assertEqual(done.returncode == 0, works, said)
        return said

    def test_each_row_has_a_checksum_and_a_url_that_nobody_can_change_on_the_way(self):
        rows = re.findall(r"^warren_fetchable\((\S+) (\S+)\n  (\S+)\n  (\S+)\n  TARGETS ", FETCH.read_text(), re.MULTILINE)
        self.assertEqual(len(rows), len(re.findall(r"^warren_fetchable\(", FETCH.read_text(), re.MULTILINE)))
        self.assertGreaterEqual(len(rows), 8)
        for package, version, url, sha256 in rows:
            with self.subTest(package=package):
                self.assertRegex(url, r"^https://[^$]*\.tar\.(gz|bz2)$")
                self.assertIn(version.replace(".", "_") if package == "Boost" else version, url)
                self.assertRegex(sha256, r"^[0-9a-f]{64}$")

    def test_a_missing_library_is_taken_from_the_mirror_as_headers_without_running_its_build_files(self):
        said = self.configure(USED, f"-DWARREN_FETCH_MIRROR={self.mirror}")
        self.assertIn("the header: #define SAMPLE 17", said)
        self.assertIn("compiled in: Sample;Sample::sample", said)
        self.assertIn(f"fetched: Sample from {self.archive}", said)

    def test_a_mirror_may_be_a_url(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=self.mirror)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            said = self.configure(USED, f"-DWARREN_FETCH_MIRROR=http://127.0.0.1:{server.server_port}")
            server.shutdown()
        self.assertIn("the header: #define SAMPLE 17", said)

    def test_an_archive_in_the_mirror_that_is_another_is_refused_by_name(self):
        self.archive.write_bytes(self.archive.read_bytes() + b"x")
        found = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        said = self.configure(USED, f"-DWARREN_FETCH_MIRROR={self.mirror}", works=False)
        self.assertIn(f"{self.archive} is not Sample 1.2: its SHA-256 is {found}, expected {self.sha256}.", said)

    def test_without_fetching_the_error_says_what_to_install(self):
        said = self.configure("warren_require(fmt 8.1 libfmt-dev fmt)", "-DWARREN_FETCH=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON",
                              f"-DWARREN_FETCH_MIRROR={self.mirror}", works=False)
        self.assertIn("fmt 8.1 or later is needed and was not found. Debian, Ubuntu: apt-get install libfmt-dev (", said)
        self.assertIn("Homebrew: brew install fmt. Or have it fetched: cmake -DWARREN_FETCH=ON.", said)

    def test_what_comes_with_the_system_is_not_fetched(self):
        said = self.configure("warren_require(ZLIB 1.2 zlib1g-dev zlib)", "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON", works=False)
        self.assertIn("apt-get install zlib1g-dev", said)
        self.assertNotIn("fetched", said)

    def install(self, version):
        """Installs the library with a CMake package that accepts only requests for its own major version."""
        folder = self.root / "installed/lib/cmake/Sample"
        folder.mkdir(parents=True)
        (folder / "SampleConfig.cmake").write_text('message(STATUS "found that of the system")\n')
        (folder / "SampleConfigVersion.cmake").write_text(
            f'set(PACKAGE_VERSION {version})\nif(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL {version} AND PACKAGE_FIND_VERSION_MAJOR EQUAL '
            f'{version.split(".", maxsplit=1)[0]})\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n')
        return f"-DCMAKE_PREFIX_PATH={self.root / 'installed'}"

    def test_what_is_installed_is_taken_also_where_a_later_major_version_says_that_it_will_not_do(self):
        said = self.configure("warren_require(Sample 1 libsample-dev sample)", self.install("8.0"))
        self.assertIn("found that of the system", said)
        self.assertNotIn("fetched", said)

    def test_what_is_installed_and_too_old_is_not_taken(self):
        said = self.configure(USED, self.install("0.9"), f"-DWARREN_FETCH_MIRROR={self.mirror}")
        self.assertNotIn("found that of the system", said)
        self.assertIn("the header: #define SAMPLE 17", said)


if __name__ == "__main__":
    unittest.main()
