"""Compiles C++ programs against a wheel's librabit in each documented way. A wheel cannot contain symbolic links, so its librabit.so is a linker
script. wheel_test.sh builds and tests the real wheel."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

from warren_testing import BIN, SOURCE

PROGRAM = SOURCE / "tests/package/rabit_consumer/main.cc"


class Compiling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        library = cls.folder / "native/lib"
        (library / "pkgconfig").mkdir(parents=True)
        (library / "librabit.so.0.1").symlink_to(next((BIN.parent / "lib").glob("librabit.so.*")).resolve())
        shutil.copy(BIN.parent / "wheel/librabit.so", library)
        shutil.copy(BIN.parent / "wheel/rabit.pc", library / "pkgconfig")
        (cls.folder / "native/include").symlink_to(SOURCE / "rabit_engine/include")

    def python(self, *words):
        environment = {**os.environ, "WARREN_NATIVE": str(self.folder / "native"), "PYTHONPATH": str(SOURCE / "python/src")}
        return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=True).stdout.strip()

    def compiled_and_run(self, *options):
        program = self.folder / "program"
        subprocess.run(["c++", "-std=c++11", PROGRAM, "-o", program, *options], check=True)
        done = subprocess.run([BIN / "dmlc-submit", "--num-workers", "2", "--quiet", program], capture_output=True, text=True, check=False)
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] 0 of 2: 2", "[1] 1 of 2: 2"], done.stderr)

    def test_the_library_is_found_by_its_name(self):
        include, library = self.python("-m", "warren.config", "--includedir"), self.python("-m", "warren.config", "--libdir")
        for linker in "bfd", "gold", "lld":
            if shutil.which(f"ld.{linker}"):
                with self.subTest(linker=linker):
                    self.compiled_and_run(f"-I{include}", f"-L{library}", "-lrabit", f"-Wl,-rpath,{library}", f"-fuse-ld={linker}")

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config_says_all_that_is_needed(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": self.python("-m", "warren.config", "--pkgconfigdir")}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "rabit"], env=environment, capture_output=True, text=True, check=True)
        self.compiled_and_run(*flags.stdout.split())

    def test_python_loads_the_library_and_not_the_script_for_the_linker(self):
        self.assertEqual(self.python("-c", "from warren._engine import native; print(native.library('librabit.so')._name)"),
                         str(self.folder / "native/lib/librabit.so.0.1"))

    def test_the_wheel_leads_to_docs_and_to_those_who_answer(self):
        project = tomllib.loads((SOURCE / "python/pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.assertLessEqual({"Homepage", "Documentation", "Issues", "Changelog"}, set(project["urls"]))


if __name__ == "__main__":
    unittest.main()
