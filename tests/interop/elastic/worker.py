"""A worker of chaos.py: trains two cases, each the first usable one from a given seed on, and writes the results.

    worker.py FORM FIRST SECOND FOLDER PAUSE

FORM is a form of files of ../same_model/files.py; a process without a job writes the files. PAUSE: the seconds to wait after each
round. The results go to FOLDER/result-TASK.json, the process ID to FOLDER/pid-TASK. Environment variables: LATE_S is the time in seconds
that a process that replaces a lost one waits before it joins; KILLED_joining_TASK and KILLED_loading_TASK are the times in seconds from the
beginning of that phase until the first process of a task kills itself."""
import os
import pathlib
import signal
import sys
import threading
import time

FORM, SEEDS, FOLDER, PAUSE = sys.argv[1], (int(sys.argv[2]), int(sys.argv[3])), pathlib.Path(sys.argv[4]), float(sys.argv[5])
TASK = os.environ.get("DMLC_TASK_ID", "alone")
(FOLDER / f"pid-{TASK}").write_text(str(os.getpid()), encoding="ascii")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "same_model"))

# pylint: disable=wrong-import-position
import json  # noqa: E402
import warnings  # noqa: E402

import xgboost  # noqa: E402

import cases  # noqa: E402
import files  # noqa: E402
import warren._xgboost.elastic.rows  # noqa: E402
import warren.xgboost  # noqa: E402

if "WARREN_ELASTIC" in os.environ and SEEDS[0] % 2:
    # Matrices are made from several batches, as with a large data set.
    warren._xgboost.elastic.rows._BATCH_VALUES = 500


def begin(phase):
    """Begins a phase. If KILLED_phase_TASK is set, and this is the task's first process, starts a timer that kills the process."""
    delay = os.environ.get(f"KILLED_{phase}_{TASK}")
    if delay and os.environ.get("DMLC_NUM_ATTEMPT") == "0":
        killer = threading.Timer(float(delay), os.kill, (os.getpid(), signal.SIGKILL))
        killer.daemon = True
        killer.start()


class Pause(xgboost.callback.TrainingCallback):
    """Makes rounds take as long as with a large data set."""

    def after_iteration(self, model, epoch, evals_log):
        time.sleep(PAUSE)
        return False


class Rounds(warren.xgboost.ElasticCallback):
    """Records the rounds. Replacements for lost workers must receive its state."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def after_iteration(self, model, epoch, evals_log):
        self.seen.append(epoch)
        return False

    def save(self):
        return list(self.seen)

    def restore(self, state):
        self.seen = list(state)


DRAWS = ("colsample_bytree", "colsample_bynode", "colsample_bylevel")


def case_from(seed):
    """The first case from this seed on that can be written as FORM and has at least 300 rows. XGBoost before 3.3 draws random numbers for
    dart and column sampling from generators without a seed, so cases with these are skipped there."""
    while True:
        case = cases.make(seed)
        draws = warren.xgboost.VERSION < (3, 3) and (case.params.get("booster") == "dart" or any(name in case.params for name in DRAWS))
        if files.can_be_written(case, FORM) and not draws and len(case.label) >= 300:
            return case
        seed += 1


def trained(case):
    name, how = files.arguments(case, FORM, FOLDER / f"{FORM}-{case.seed}")
    return cases.trained(case, warren.xgboost.Data(name, **how), 2 * case.rounds, elastic=True, callbacks=[Rounds(), Pause()])


warnings.simplefilter("ignore")
chosen = [case_from(seed) for seed in SEEDS]
if TASK == "alone":
    for one in {case.seed: case for case in chosen}.values():
        files.write(one, FORM, FOLDER / f"{FORM}-{one.seed}")
if int(os.environ.get("DMLC_NUM_ATTEMPT", "0")) > 0:
    time.sleep(float(os.environ["LATE_S"]))
begin("joining")
with warren.xgboost.communicator():
    begin("loading")
    found = [trained(one) for one in chosen]
    text = json.dumps(found)
    path = FOLDER / f"result-{TASK}.json"
    path.with_suffix(".new").write_text(text, encoding="utf-8")
    path.with_suffix(".new").rename(path)
