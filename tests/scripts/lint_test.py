"""Tests of scripts/lint in a small tree: it remembers units without findings, and checks a unit again after any change to its input."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from warren_testing import SOURCE

CLEAN = "#pragma once\ninline int* Nothing() {\n  return nullptr;\n}\n"
FINDING = CLEAN.replace("nullptr", "0")  # modernize-use-nullptr
UNIT = '#include "data/header.h"\nint* Unit() {\n  return Nothing();\n}\n'


@unittest.skipUnless(shutil.which("clang-tidy") and shutil.which("clang-format"), "SKIPPED: clang-tidy or clang-format is not installed")
class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="warren-lint-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "tree")
        for file in ("scripts/lint", "scripts/comments", ".clang-tidy", ".clang-format"):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / file, self.root / file)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.root.parent / "cache"), "CLANG_TIDY": "clang-tidy",
                            "GIT_CONFIG_GLOBAL": "/dev/null",
                            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}
        for command in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "nothing"]):
            subprocess.run(["git", *command], cwd=self.root, env=self.environment, check=True)
        self.write("data/header.h", CLEAN)
        self.write("data/unit.cc", UNIT)
        self.compile("c++ -std=c++20")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def compile(self, compiler):
        unit = self.root / "data/unit.cc"
        self.write("build/compile_commands.json", json.dumps([{
            "directory": str(self.root / "build"), "file": str(unit), "command": f"{compiler} -I{self.root} -c {unit} -o unit.o"}]))

    def lint(self, *words, which=("--changed", ), code=0):
        done = subprocess.run([self.root / "scripts/lint", *which, *words], cwd=self.root, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_what_was_clean_is_remembered_and_what_was_not_is_not(self):
        self.assertIn("1 units clean, 0 of them unchanged", self.lint())
        self.assertIn("1 units clean, 1 of them unchanged", self.lint())
        self.write("data/header.h", FINDING)
        for _ in range(2):
            self.assertIn("modernize-use-nullptr", self.lint(code=1))
        self.write("data/header.h", CLEAN)
        self.assertIn("1 of them unchanged", self.lint())
        self.write("data/unit.cc", UNIT + "int* Another() {\n  return 0;\n}\n")
        self.assertIn("modernize-use-nullptr", self.lint(code=1))

    def test_the_command_and_the_rules_count(self):
        self.assertIn("0 of them unchanged", self.lint())
        self.compile("c++ -std=c++17")
        self.assertIn("0 of them unchanged", self.lint())
        self.assertIn("1 of them unchanged", self.lint())
        rules = (self.root / ".clang-tidy").read_text(encoding="utf-8")
        self.write(".clang-tidy", rules.replace("modernize-use-nullptr", "modernize-use-trailing-return-type"))
        self.assertIn("modernize-use-trailing-return-type", self.lint(code=1))

    def test_all_files_are_read_in_the_groups_in_which_they_are_compiled(self):
        second, group = self.root / "data/second.cc", self.root / "build/Unity/unity_0_cxx.cxx"
        self.write("data/second.cc", UNIT.replace("Unit", "Second"))
        self.write("build/Unity/unity_0_cxx.cxx", f'#include "{self.root}/data/unit.cc"\n\n#include "{second}"\n')
        self.write("build/compile_commands.json", json.dumps([{
            "directory": str(self.root / "build"), "file": str(group), "command": f"c++ -std=c++20 -I{self.root} -c {group} -o group.o"}]))
        # A stand-in for mypy that reports no errors; this test does not cover mypy.
        self.write("bin/mypy", "#!/bin/sh\n")
        (self.root / "bin/mypy").chmod(0o755)
        self.environment["PATH"] = f"{self.root}/bin:{os.environ['PATH']}"
        self.assertIn("1 units clean, 0 of them unchanged", self.lint(which=()))
        self.assertIn("1 units clean, 1 of them unchanged", self.lint(which=()))
        self.write("data/second.cc", UNIT.replace("Unit", "Second") + "int* Another() {\n  return 0;\n}\n")
        for which in ((), ("--changed", )):
            self.assertIn("data/second.cc:6:10: error: use nullptr", self.lint(which=which, code=1))

    def test_formatting_comes_first_and_needs_no_build(self):
        shutil.rmtree(self.root / "build")
        self.assertEqual(self.lint("--format"), "")
        self.write("data/header.h", CLEAN.replace("  return", "return"))
        self.assertIn("code should be clang-formatted", self.lint("--format", code=1))


if __name__ == "__main__":
    unittest.main()
