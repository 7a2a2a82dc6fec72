"""The ABI promise of docs/explanation/abi.md for symbols: all names in librabit.symbols and librabit_xgboost.symbols stay exported
until the SOVERSION in the first line of the list changes, and the C functions in c_functions.symbols keep their arguments. The libraries may
depend on the C and C++ libraries only.

    exported_symbols_test.py --update LIBRARIES     # rewrites the lists from the libraries in a build's lib folder
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
LIBRARIES = ("librabit", "librabit_xgboost")
# Drop-in replacements for librabit, with the same linker map.
VARIANTS = ("librabit_mpi", "librabit_mock")
#: The headers of the C functions, whose symbols do not contain their arguments.
C_HEADERS = ("rabit/c_api.h", "rabit/device.h", "warren/c_api.h")
SYSTEM = re.compile(r"^(libstdc\+\+|libgcc_s|libm|libc|ld-linux[-\w]*)\.so\.")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exported(library):
    """Returns the exported names as the linker sees them: mangled, with their version node if they have one."""
    return {line.split()[2] for line in output("nm", "-D", "--defined-only", library).splitlines()}


def needed(library):
    return re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library))


def prototypes():
    """Returns the declarations of all C functions of the headers, without the names of their arguments. Needs GCC."""
    found = set()
    include = HERE.parents[2] / "rabit_engine/include"
    with tempfile.TemporaryDirectory() as folder:
        listed = pathlib.Path(folder, "declarations")
        for header in C_HEADERS:
            subprocess.run(["gcc", "-aux-info", listed, "-fsyntax-only", "-x", "c", "-I", include, include / header], check=True)
            found |= set(re.findall(r"extern (.*\b(?:Rabit|Warren)\w+ \(.*\);)", listed.read_text(encoding="utf-8")))
    return found


def soversion(library):
    soname = re.search(r"SONAME.*\[(.*)\]", output("readelf", "-d", library))[1]
    name, version = soname.split(".so.")
    assert library.name == f"{name}.so", soname
    return version


def promise(name):
    """Returns the SOVERSION and the names recorded in the list of the library `name`."""
    lines = (HERE / f"{name}.symbols").read_text(encoding="utf-8").splitlines()
    return lines[0].removeprefix("SOVERSION "), set(lines[1:])


def broken(recorded, promised, version, found):
    """Returns how a library with SOVERSION `version` that exports the names `found` differs from the list, or None if it does not."""
    if version != recorded:
        return f"the SOVERSION is {version}, the list is that of {recorded}: write it anew with --update"
    if promised - found:
        return (f"no longer exported, or with other arguments: {sorted(promised - found)}. Programs linked with SOVERSION {version} "
                "would not start: keep them, or raise the minor version in CMakeLists.txt")
    if found - promised:
        return f"new: {sorted(found - promised)}. From the next release on they have to stay; if they are to, write the list with --update"
    return None


def update(folder):
    version, found = soversion(folder / "librabit.so"), prototypes()
    recorded, promised = promise("c_functions")
    if version == recorded and promised - found:
        sys.exit(f"C functions: {broken(recorded, promised, version, found)}")
    (HERE / "c_functions.symbols").write_text("\n".join([f"SOVERSION {version}", *sorted(found)]) + "\n", encoding="utf-8")
    for name in LIBRARIES:
        library = folder / f"{name}.so"
        version, found = soversion(library), exported(library)
        if (HERE / f"{name}.symbols").exists():
            recorded, promised = promise(name)
            if version == recorded and promised - found:
                sys.exit(f"{name}: {broken(recorded, promised, version, found)}")
        (HERE / f"{name}.symbols").write_text("\n".join([f"SOVERSION {version}", *sorted(found)]) + "\n", encoding="utf-8")


class ExportedSymbols(unittest.TestCase):
    def test_what_a_soversion_has_exported_it_exports(self):
        for name in LIBRARIES:
            with self.subTest(library=name):
                wrong = broken(*promise(name), soversion(LIB / f"{name}.so"), exported(LIB / f"{name}.so"))
                if wrong:
                    self.fail(f"{name}: {wrong}")

    @unittest.skipUnless(shutil.which("gcc"), "SKIPPED: there is no gcc")
    def test_c_functions_keep_their_arguments(self):
        wrong = broken(*promise("c_functions"), soversion(LIB / "librabit.so"), prototypes())
        if wrong:
            self.fail(wrong)

    def test_a_symbol_may_go_with_the_soversion_only_and_a_new_one_has_to_be_listed(self):
        self.assertIsNone(broken("0.1", {"a", "b"}, "0.1", {"a", "b"}))
        self.assertIn("raise the minor version", broken("0.1", {"a", "b"}, "0.1", {"a"}))
        self.assertIn("raise the minor version", broken("0.1", {"a", "b"}, "0.1", {"a", "b@@changed"}))
        self.assertIn("--update", broken("0.1", {"a"}, "0.1", {"a", "b"}))
        self.assertIn("--update", broken("0.1", {"a", "b"}, "0.2", {"a"}))

    def test_those_that_stand_in_for_librabit_export_the_same(self):
        for name in VARIANTS:
            with self.subTest(library=name):
                self.assertEqual(exported(LIB / f"{name}.so"), exported(LIB / "librabit.so"))
                self.assertEqual(soversion(LIB / f"{name}.so"), soversion(LIB / "librabit.so"))

    def test_librabit_exports_no_name_of_libxgboost_but_the_c_api(self):
        found = subprocess.run("/sbin/ldconfig -p | sed -n 's/.*libxgboost.so.0.*=> //p'", shell=True,
                               capture_output=True, text=True).stdout.strip()
        if not found:
            self.skipTest("no libxgboost.so.0 here")
        for name in exported(LIB / "librabit.so") & exported(found):
            self.assertRegex(name, "^Rabit")

    def test_all_need_nothing_but_the_c_and_cxx_libraries(self):
        for library in LIBRARIES:
            for name in needed(LIB / f"{library}.so"):
                self.assertRegex(name, SYSTEM)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--update"]:
        update(pathlib.Path(sys.argv[2]))
    else:
        from api_testing import LIB
        unittest.main()
