"""Compares one version of XGBoost, 2.1 or later, over Warren's engine and over its own communication. See any_xgboost_test.py for
how the version is chosen."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from any_xgboost_test import COLLECTIVE, FOLDER, LIMIT_S, PYTHON, Workers, environment
from warren_testing import BIN

#: How much a single-precision sum may differ if its terms are added in another order.
SAME = 1e-6
#: All other ranks must name a killed rank within this time, even on a busy machine. They usually take a few milliseconds.
NAMED_S = 10
COLL = b"N7xgboost10collective4CollE"

C_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <dlfcn.h>
#include <unistd.h>
int XGCommunicatorInit(const char*);
int XGCommunicatorFinalize(void);
int XGCommunicatorGetRank(void);
int XGCommunicatorAllreduce(void*, size_t, int, int);
const char* XGBGetLastError(void);
int main(void) {
  char config[500];
  snprintf(config, sizeof config, "{\"dmlc_tracker_uri\": \"%s\", \"dmlc_tracker_port\": %s, \"dmlc_task_id\": \"%s\"%s}",
           getenv("DMLC_TRACKER_URI"), getenv("DMLC_TRACKER_PORT"), getenv("DMLC_TASK_ID"),
           getenv("LATE") != NULL ? ", \"dmlc_timeout\": 4" : "");
  if (XGCommunicatorInit(config) != 0) return fprintf(stderr, "init: %s\n", XGBGetLastError()), 1;
  int64_t sum = XGCommunicatorGetRank() + 1;
  if (getenv("LATE") != NULL && XGCommunicatorGetRank() == 1) sleep(10);
  if (XGCommunicatorAllreduce(&sum, 1, 7, 2) != 0) return fprintf(stderr, "allreduce: %s\n", XGBGetLastError()), 2;
  uint64_t (*served)(void) = (uint64_t(*)(void))dlsym(RTLD_DEFAULT, "WarrenXGBoostNumServed");
  printf("sum %d served %d\n", (int)sum, served == NULL ? -1 : (int)served());
  return XGCommunicatorFinalize();
}
"""


@unittest.skipUnless(COLLECTIVE, "XGBoost before 2.1 communicates in another way")
class OverWarren(Workers):
    def worker(self, workers, *command, **options):
        return self.submit(workers, FOLDER / "over_warren_worker.py", *command, **options)

    def with_engine(self, engine, workers, *command, **options):
        return self.worker(workers, *command, options=["--env", f"WARREN_XGBOOST_ENGINE={engine}"], **options)

    def engines(self, output):
        """For each worker: the engine before, inside and after the communicator's block; the sum; and the number of served calls."""
        return [json.loads(text) for text in re.findall(r"engine (\[.*\])", output)]

    def models(self, engine, workers):
        found = re.search(r"models (\{.*\})", self.with_engine(engine, workers, "models"))
        return json.loads(found[1])

    def test_30_models_over_the_engine_equal_those_over_xgboosts_own_communication(self):
        for workers in (1, 2, 3):
            ours, own = self.models("warren", workers), self.models("own", workers)
            self.assertEqual((ours["engine"], own["engine"]), ("warren" if workers > 1 else "own", "own"))
            self.assertEqual(list(ours["of"]), list(own["of"]))
            self.assertGreaterEqual(len(own["of"]), 19)
            for name, (model, served, predicted) in ours["of"].items():
                other_model, other_served, other_predicted = own["of"][name]
                with self.subTest(name, workers=workers):
                    self.assertEqual(other_served, 0)
                    self.assertEqual(served > 0, workers > 1)
                    if workers < 3:  # a sum of two numbers does not depend on their order
                        self.assertEqual(model, other_model)
                    for one, other in zip(predicted, other_predicted, strict=True):
                        self.assertAlmostEqual(one, other, delta=SAME)

    def test_31_every_type_and_operation_over_the_engine(self):
        for workers in (2, 3):
            output = self.worker(workers, "types_and_operations")
            self.assertEqual(output.count("types 228 warren"), workers, output)

    def test_32_all_ranks_together_choose_the_engine(self):
        self.assertEqual(self.engines(self.worker(1, "engine_is")), [["own", "own", "own", 1, 0]])
        self.assertEqual(self.engines(self.worker(3, "engine_is")), [["own", "warren", "own", 6, 5]] * 3)
        output = self.with_engine("own", 2, "engine_is")
        self.assertEqual(self.engines(output), [["own", "own", "own", 3, 0]] * 2)
        self.assertNotIn("keeps its own", output)
        # One worker opts out.
        script = self.folder / "one_does_not.sh"
        script.write_text(f'[ "$DMLC_TASK_ID" = 0 ] || export WARREN_XGBOOST_ENGINE=$1\nexec {PYTHON} '
                          f'{FOLDER}/over_warren_worker.py engine_is\n')
        output = self.submit_command(2, "sh", script, "own")
        self.assertEqual(self.engines(output), [["own", "own", "own", 3, 0]] * 2)
        self.assertEqual(output.count("warren: XGBoost keeps its own communication: rank 1: WARREN_XGBOOST_ENGINE is own"), 1,
                         output)
        # If the lowest rank opts out, another one prints the line.
        script.write_text(script.read_text().replace("= 0 ]", "= 1 ]"))
        output = self.submit_command(2, "sh", script, "own")
        self.assertEqual(output.count("[1] warren: XGBoost keeps its own communication: rank 0: WARREN_XGBOOST_ENGINE is own"), 1,
                         output)
        script.write_text(script.read_text().replace("= 1 ]", "= 0 ]"))
        # If one worker has an invalid setting, both get an error, and neither reports the other as lost.
        output = self.submit_command(2, "sh", script, "ours", options=["--show-all-errors"], code=1)
        self.assertIn("RuntimeError: XGBoost cannot communicate over Warren's engine: rank 1: WARREN_XGBOOST_ENGINE is 'ours', "
                      "expected 'own', 'warren' or 'auto'", output)
        self.assertNotIn("XGBoostError", output)

    def test_32b_different_versions_of_xgboost_are_told_of_once(self):
        output = self.worker(3, "versions")
        self.assertEqual(output.count("warren: the workers have different versions of XGBoost"), 1, output)
        self.assertRegex(output, r"\[0\] warren: .* may differ \(0\.1\.2 on rank 1; \S+ on ranks 0, 2\): install one version on all hosts")
        self.assertNotIn("different versions", self.worker(2, "engine_is"))

    # --- in communicators that XGBoost created, under XGBoost's own tracker ---

    def under_its_own_tracker(self, workers, *command):
        """Starts the workers of a job under XGBoost's own tracker. `command` is the worker's function and its further arguments."""
        code = (f"import json, sys; from xgboost.tracker import RabitTracker; t = RabitTracker(n_workers={workers}, "
                "host_ip='127.0.0.1'); t.start(); print(json.dumps(t.worker_args()), flush=True); sys.stdin.read()")
        tracker = subprocess.Popen([PYTHON, "-W", "ignore", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(tracker.communicate)
        self.addCleanup(tracker.kill)
        arguments = tracker.stdout.readline()
        return [subprocess.Popen([PYTHON, FOLDER / "over_warren_worker.py", command[0], arguments, str(task), *command[1:]],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
                for task in range(workers)]

    def outputs(self, processes):
        said = []
        for process in processes:
            with contextlib.closing(process.stdout), contextlib.closing(process.stderr):
                out, err = process.communicate(timeout=LIMIT_S)
            said.append(out + err)
        return said

    @staticmethod
    def errors(said):
        """What each worker printed of its error, by rank."""
        return {rank: rest for rank, *rest in map(json.loads, re.findall(r"error (\[.*\])", said))}

    def test_33_any_communicator_can_be_accelerated(self):
        for how in ("block", "all"):
            processes = self.under_its_own_tracker(3, "accelerated", how)
            for said in self.outputs(processes):
                self.assertRegex(said, r"served [1-9]")
            self.assertEqual([process.returncode for process in processes], [0, 0, 0])

    def test_34_a_killed_rank_is_named_by_all_others_at_once(self):
        processes = self.under_its_own_tracker(3, "killed")
        said = "".join(self.outputs(processes))
        self.assertEqual(sorted(process.returncode for process in processes), [-9, 3, 3], said)
        killed_at = float(re.search(r"killed (\S+)", said)[1])
        errors = self.errors(said)
        self.assertEqual(sorted(errors), [0, 2], said)
        for at, message in errors.values():
            self.assertIn("over Warren's engine: ", message)
            self.assertRegex(message, "rank 1")
            self.assertLess(at - killed_at, NAMED_S)

    def test_35_nobody_waits_for_a_worker_that_raises_inside_an_accelerated_block(self):
        processes = self.under_its_own_tracker(3, "raises_inside")
        said = "".join(self.outputs(processes))
        errors = self.errors(said)
        self.assertEqual(errors[1], ["ValueError", "no such luck"])
        for rank in (0, 2):
            self.assertEqual(errors[rank][0], "XGBoostError")
            self.assertIn("rank 1", errors[rank][1])

    def test_39_the_engine_can_begin_again_although_it_was_not_ended(self):
        processes = self.under_its_own_tracker(3, "begins_again")
        self.assertEqual("".join(self.outputs(processes)).count("sum 6 warren"), 3)

    def test_40_accelerating_only_some_workers_is_an_error(self):
        processes = self.under_its_own_tracker(2, "not_all_asked")
        said = "".join(self.outputs(processes))
        self.assertNotIn("entered", said)
        errors = self.errors(said)
        self.assertEqual(errors[0][0], "RuntimeError", said)
        self.assertIn("all workers of a communicator must request Warren's engine", errors[0][1])

    def test_41_the_others_wait_for_a_worker_that_is_busy_before_it_leaves(self):
        self.assertEqual(self.worker(2, "lingers").count("left"), 2)

    def test_42_the_engine_ends_with_its_communicator(self):
        said = "".join(self.outputs(self.under_its_own_tracker(2, "leaves_inside")))
        self.assertEqual(said.count("left warren own own"), 2, said)

    def test_43_a_call_waits_as_long_as_accelerate_was_told(self):
        said = "".join(self.outputs(self.under_its_own_tracker(2, "comes_late")))
        errors = self.errors(said)
        self.assertLess(errors[0][0], 9, said)
        self.assertRegex(errors[0][1], r"has waited 4\.\d s for rank 1")
        self.assertIn("rank 0 gave up on this rank", errors[1][1])

    # --- programs in C, and defective libraries ---

    def library(self):
        """XGBoost's library and the folder of its package."""
        code = "import warnings; warnings.simplefilter('ignore'); import xgboost; print(xgboost.__file__)"
        file = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env=environment(), check=True).stdout
        package = pathlib.Path(file.strip()).parent
        return package / "lib/libxgboost.so", package

    def test_36_a_program_in_c_is_served_by_preloading(self):
        library, package = self.library()
        (self.folder / "program.c").write_text(C_PROGRAM)
        # A wheel's library has a soname that differs from its file name, and looks for other libraries next to the file.
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        (self.folder / re.search(r"soname: \[(.*)\]", dynamic)[1]).symlink_to(library)
        folders = [self.folder, library.parent, *package.parent.glob("xgboost*.libs")]
        subprocess.run(["gcc", "-w", "-o", self.folder / "program", self.folder / "program.c", library, "-ldl",
                        f"-Wl,--disable-new-dtags,-rpath,{':'.join(map(str, folders))}"], check=True)
        preload = ["--env", f"LD_PRELOAD={BIN.parent}/lib/librabit_xgboost.so"]
        output = self.submit_command(3, "./program", options=preload)
        self.assertEqual(output.count("sum 6 served 5"), 3, output)
        output = self.submit_command(1, "./program", options=preload)
        self.assertIn("sum 1 served 0", output)
        output = self.submit_command(2, "./program", options=[*preload, "--env", "WARREN_XGBOOST_ENGINE=own"])
        self.assertEqual(output.count("sum 3 served 0"), 2, output)
        self.assertNotIn("rabit:", output)
        output = self.submit_command(2, "./program", options=[*preload, "--env", "WARREN_XGBOOST_ENGINE=ours"], code=None)
        self.assertIn("rabit: XGBoost cannot communicate over Warren's engine: rank 0: WARREN_XGBOOST_ENGINE is 'ours'", output)
        self.assertIn("init: XGBoost cannot communicate over Warren's engine: rank 0: WARREN_XGBOOST_ENGINE is 'ours'", output)
        output = self.submit_command(2, "./program", options=[*preload, "--env", "LATE=1"], code=None)
        self.assertRegex(output, r"allreduce: .*has waited 4\.\d s for rank 1")
        # One worker opts out, or has an invalid setting.
        script = self.folder / "one_does_not.sh"
        script.write_text('[ "$DMLC_TASK_ID" = 0 ] || export WARREN_XGBOOST_ENGINE=$1\nexec ./program\n')
        output = self.submit_command(3, "sh", script, "own", options=preload)
        self.assertEqual(output.count("sum 6 served 0"), 3, output)
        self.assertEqual(output.count("[0] rabit: XGBoost keeps its own communication: rank 1: WARREN_XGBOOST_ENGINE is own"), 1,
                         output)
        output = self.submit_command(2, "sh", script, "ours", options=preload, code=None)
        for rank in (0, 1):
            self.assertIn(f"[{rank}] rabit: XGBoost cannot communicate over Warren's engine: rank 1: WARREN_XGBOOST_ENGINE is 'ours'", output)

    def altered(self, alter):
        """Copies XGBoost's package and lets `alter` change the copied library. Returns the folder of the copy."""
        library, package = self.library()
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        copy = folder / "xgboost"
        copy.mkdir()
        for entry in package.iterdir():
            if entry.name != "lib":
                (copy / entry.name).symlink_to(entry)
        for entry in (*package.parent.glob("xgboost*.dist-info"), *package.parent.glob("xgboost*.libs")):
            (folder / entry.name).symlink_to(entry)
        (copy / "lib").mkdir()
        shutil.copy(library, copy / "lib/libxgboost.so")
        alter(copy / "lib/libxgboost.so")
        return folder

    def engine_in_altered(self, alter, engine="auto", code=0):
        folder = self.altered(alter)
        path = f"{folder}:{environment()['PYTHONPATH']}"
        return self.submit_command(2, PYTHON, FOLDER / "over_warren_worker.py", "engine_is", code=code,
                                   options=["--env", f"PYTHONPATH={path}", "--env", f"WARREN_XGBOOST_ENGINE={engine}"])

    def test_37_a_stripped_library_is_served(self):
        output = self.engine_in_altered(lambda library: subprocess.run(["strip", "--strip-all", library], check=True))
        self.assertEqual(self.engines(output), [["own", "warren", "own", 3, 5]] * 2, output)

    def test_38_an_unknown_library_keeps_its_own_communication(self):
        def rename(library):
            """Changes the name of the type Coll in the constant, but not in the symbols that some builds export."""
            text = library.read_bytes()
            self.assertEqual(text.count(b"\0" + COLL + b"\0"), 1)
            library.write_bytes(text.replace(b"\0" + COLL + b"\0", b"\0" + COLL.replace(b"4Coll", b"4Cool") + b"\0"))

        def move_function(library):
            """Makes the last entry of Coll's table of virtual functions point to the type's name."""
            readelf = subprocess.run(["readelf", "-W", "-r", library], capture_output=True, text=True, check=True).stdout
            # Maps the offset of each relocation to the address that the loader stores there: an offset in the library or a symbol's
            # address.
            written = {int(found[1], 16): int(found[2], 16) for found in re.finditer(
                r"^([0-9a-f]+)\s+\S+ R_X86_64_(?:RELATIVE|64)\s+([0-9a-f]+)", readelf, re.MULTILINE)}
            text = bytearray(library.read_bytes())
            name = text.index(b"\0" + COLL + b"\0") + 1  # constants have the same offset in the file as in memory
            of_type = {place - 8 for place, value in written.items() if value == name}
            # In a table of virtual functions, a zero precedes the type, and the functions follow it.
            table, = (place for place, value in written.items() if value in of_type and place - 8 not in written
                      and all(place + 8 * slot in written for slot in range(1, 8)))
            slot = (table + 8 * 7).to_bytes(8, "little")
            at = next(at for at in (found.start() for found in re.finditer(re.escape(slot), bytes(text)))
                      if text[at + 8] in (1, 8))
            text[at + 8:at + 24] = (8).to_bytes(8, "little") + name.to_bytes(8, "little")
            library.write_bytes(bytes(text))

        for alter, why in ((rename, "it has no class of the type N7xgboost10collective4CollE"),
                           (move_function, "not all 7 virtual functions of N7xgboost10collective4CollE lie in its code")):
            output = self.engine_in_altered(alter)
            self.assertEqual(self.engines(output), [["own", "own", "own", 3, 0]] * 2, output)
            self.assertEqual(output.count(f"warren: XGBoost keeps its own communication: rank 0: {why}"), 1, output)
        output = self.engine_in_altered(rename, "warren", code=1)
        self.assertIn("RuntimeError: XGBoost cannot communicate over Warren's engine: rank 0: it has no class", output)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    unittest.main()
