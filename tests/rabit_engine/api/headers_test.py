"""The public headers compile without warnings in programs for rabit 0.1 and for its copy in XGBoost."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from api_testing import CXX_COMPILERS, HERE, INCLUDE, WARNINGS
from warren_testing import AT_NIGHT

DMLC = pathlib.Path("/usr/include/dmlc")
STANDARDS = ("c++11", "c++14", "c++17", "c++20") if AT_NIGHT else ("c++11", "c++20")
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
USERS = sorted((HERE / "users").glob("*.cc"))
WRITING = """#include <rabit/internal/io.h>
int main() {
  std::string bytes;
  rabit::utils::MemoryBufferStream(&bytes).Write("a", 1);
  rabit::utils::MemoryFixSizeBuffer(&bytes[0], 1).Write("b", 1);
}
"""


def check_all(test, jobs):
    """Checks that all jobs succeed and print nothing to stderr. A job is a pair: a command, and the text for its standard
    input or None."""

    def run(job):
        command, text = job
        return command, subprocess.run([*map(str, command)], input=text, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for command, done in pool.map(run, jobs):
            with test.subTest(command=" ".join(map(str, command))):
                test.assertEqual((done.returncode, done.stderr), (0, ""))


class Headers(unittest.TestCase):
    def test_programs_for_rabit_and_for_its_copy_in_xgboost_compile_with_every_standard(self):
        self.assertEqual(len(USERS), 4)
        # Outside nightly runs, the first compiler is covered by the next test.
        check_all(self, [([compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", INCLUDE, user], None)
                         for compiler in CXX_COMPILERS[0 if AT_NIGHT else 1:] for standard in STANDARDS for user in USERS])

    def test_they_compile_as_a_release_without_a_warning(self):
        """-O3, as in CMake's Release: some warnings come from the optimizer."""
        check_all(self, [([compiler, f"-std={standard}", *WARNINGS, "-O3", "-DNDEBUG", "-c", "-o", os.devnull, "-I", INCLUDE,
                           user], None)
                         for compiler in CXX_COMPILERS[:None if AT_NIGHT else 1] for standard in STANDARDS for user in USERS])

    def test_each_header_compiles_on_its_own(self):
        self.assertIn("rabit/internal/io.h", HEADERS)
        check_all(self, [([compiler, "-std=c++11", *WARNINGS, "-fsyntax-only", "-I", INCLUDE, "-x", "c++", "-"],
                          f"#include <{header}>\nint main() {{ return 0; }}\n")
                         for compiler in CXX_COMPILERS for header in HEADERS])

    def test_they_compile_with_each_return_type_that_dmlc_core_gave_to_write(self):
        void, size = "virtual void Write(const void", "virtual size_t Write(const void"
        installed = (DMLC / "io.h").read_text(encoding="utf-8")
        for wanted, other in ((void, size), (size, void)):
            with tempfile.TemporaryDirectory() as folder:
                changed = pathlib.Path(shutil.copytree(DMLC, pathlib.Path(folder, "dmlc")), "io.h")
                changed.write_text(installed.replace(other, wanted), encoding="utf-8")
                self.assertIn(wanted, changed.read_text(encoding="utf-8"))
                check_all(self, [([compiler, "-std=c++11", *WARNINGS, "-fsyntax-only", "-isystem", folder, "-I", INCLUDE,
                                   "-x", "c++", "-"], WRITING) for compiler in CXX_COMPILERS])

    def test_the_c_header_compiles_as_c(self):
        check_all(self, [([compiler, "-x", "c", f"-std={standard}", "-pedantic", *WARNINGS, "-fsyntax-only", "-I",
                           INCLUDE, HERE / "users/program.c"], None)
                         for compiler in CXX_COMPILERS for standard in ("c99", "c17")])

    def test_lambdas_can_be_switched_off(self):
        check_all(self, [([compiler, "-std=c++11", "-DDMLC_USE_CXX11=0", *WARNINGS, "-fsyntax-only", "-I", INCLUDE,
                           "-x", "c++", "-"],
                          "#include <rabit/rabit.h>\nint main() { return rabit::GetRank(); }\n")
                         for compiler in CXX_COMPILERS])


if __name__ == "__main__":
    unittest.main()
