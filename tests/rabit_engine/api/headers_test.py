"""The public headers compile, without a warning, as users of either kind of rabit have them."""

import concurrent.futures
import os
import subprocess
import unittest

from api_testing import CXX_COMPILERS, HERE, INCLUDE, WARNINGS

STANDARDS = ("c++11", "c++14", "c++17", "c++20")
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
USERS = sorted((HERE / "users").glob("*.cc"))


def check_all(test, jobs):
    """Each job: (command, source text for the standard input or None)."""

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
        check_all(self, [([compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", INCLUDE, user], None)
                         for compiler in CXX_COMPILERS for standard in STANDARDS for user in USERS])

    def test_they_compile_as_a_release_without_a_warning(self):
        """-O3, as CMake's Release has it: some warnings come from the optimizer."""
        check_all(self, [([compiler, f"-std={standard}", *WARNINGS, "-O3", "-DNDEBUG", "-c", "-o", os.devnull, "-I", INCLUDE,
                           user], None)
                         for compiler in CXX_COMPILERS for standard in ("c++11", "c++20") for user in USERS])

    def test_each_header_compiles_on_its_own(self):
        self.assertIn("rabit/internal/io.h", HEADERS)
        check_all(self, [([compiler, "-std=c++11", *WARNINGS, "-fsyntax-only", "-I", INCLUDE, "-x", "c++", "-"],
                          f"#include <{header}>\nint main() {{ return 0; }}\n")
                         for compiler in CXX_COMPILERS for header in HEADERS])

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
