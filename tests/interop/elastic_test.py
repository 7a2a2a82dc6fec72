"""Jobs that lose workers and continue: dmlc-submit --num-workers MIN:MAX and warren.xgboost.train(..., elastic=True). tests/interop/matrix
runs this file for each version of XGBoost, as any_xgboost_test.py describes. elastic/chaos.py runs more such jobs."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from any_xgboost_test import PYTHON, VERSION, environment
from warren_testing import AT_NIGHT, BIN, local_tracker, wait_for

FOLDER = pathlib.Path(__file__).parent
sys.path.append(str(FOLDER.parent / "submit/cluster"))
import ssh_hosts  # noqa: E402
import stand_in_kubernetes  # noqa: E402
FIRST = (2, 1)
#: The number of jobs that elastic/chaos.py runs, and the seed of the first one.
JOBS = int(os.environ.get("WARREN_ELASTIC_JOBS", "60" if AT_NIGHT else "40"))
FIRST_JOB = int(os.environ.get("WARREN_FIRST_ELASTIC_JOB", "0"))
LIMIT_S = 100
#: Options of dmlc-submit that give workers on other hosts what they need of environment().
ENVIRONMENT_OPTIONS = [word for name in ("OMP_NUM_THREADS", "WARREN_NATIVE", "PYTHONPATH")
                       for word in ("--env", f"{name}={environment()[name]}")]

#: Trains 40 rounds of at least 0.1 s. Prints the model's digest and the number of workers at the end.
PROGRAM = """
import hashlib, os, pathlib, sys, time
pathlib.Path(f"pid-{os.environ.get('DMLC_TASK_ID')}").write_text(str(os.getpid()))
import xgboost
import warren.xgboost

class Pause(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        pathlib.Path(f"round-{os.environ.get('DMLC_TASK_ID')}").write_text(str(epoch))
        time.sleep(.1)

with warren.xgboost.communicator():
    data = warren.xgboost.Data("rows.svm?format=libsvm&indexing_mode=1")
    model = warren.xgboost.train({"max_depth": 3, "nthread": 1}, data, 40, elastic=True, callbacks=[Pause()], verbose_eval=False)
    assert (os.environ["RANK"], os.environ["WORLD_SIZE"]) == (str(warren.xgboost.get_rank()), str(warren.xgboost.get_world_size())) or (
        "WARREN_ELASTIC" not in os.environ)
    print("model", hashlib.sha256(bytes(model.save_raw("ubj"))).hexdigest(), "of", warren.xgboost.get_world_size(), flush=True)
"""


#: The beginning of a program: a process that replaces a lost one waits until a condition, inserted in place of {}, holds.
LATE = """
import os, pathlib, time
while int(os.environ.get("DMLC_NUM_ATTEMPT", "0")) > 0 and not ({}):
    time.sleep(.05)
"""


def with_callbacks(code, made, method):
    """PROGRAM with 9 rounds and, instead of Pause, other callbacks: those that the expression `made` creates from the classes in `code`,
    then one that kills worker 1 of 2 in `method` of round 4, once."""
    killer = f"""
class Killer(xgboost.callback.TrainingCallback):
    def {method}(self, model, epoch, evals_log):
        if epoch == 4 and (os.environ.get("DMLC_TASK_ID"), os.environ.get("DMLC_NUM_ATTEMPT"), os.environ.get("DMLC_NUM_WORKER")) == ("1", "0", "2"):
            os.kill(os.getpid(), 9)
"""
    program = PROGRAM.replace("class Pause", f"{code}{killer}\nclass Pause").replace("[Pause()]", f"[{made}, Killer()]")
    return program.replace("40, elastic", "9, elastic")


#: Trains 9 rounds with a checkpoint every two rounds. In a job of several workers, the first attempt runs WHAT after the sixth round: on
#: all workers if it kills them, otherwise on worker 1. Prints one digest of the callback's state, the evaluations and the model.
SAVED = PROGRAM.replace("class Pause", """
class Ending(warren.xgboost.ElasticCallback):
    rounds = []
    def after_iteration(self, model, epoch, evals_log):
        self.rounds = self.rounds + [epoch]
        what = "WHAT"
        if epoch == 5 and os.environ["DMLC_NUM_ATTEMPT"] == "0" and os.environ["DMLC_NUM_WORKER"] != "1" and (
                "kill" in what or os.environ["DMLC_TASK_ID"] == "1"):
            # All get as far as this, so that nobody is left who has the rounds.
            pathlib.Path(f"there-{os.environ['DMLC_TASK_ID']}").touch()
            while "kill" in what and len(list(pathlib.Path().glob("there-*"))) < int(os.environ["DMLC_NUM_WORKER"]):
                time.sleep(.01)
            exec(what)
    def save(self):
        return self.rounds, {}
    def restore(self, state):
        self.rounds = state[0]

class Pause""").replace("[Pause()]", '[ending], checkpoint=warren.xgboost.Checkpoints("saved", every=2), early_stopping_rounds=30, '
                                     'evals=[(data, "train")], evals_result=found').replace(
    "    model = ", "    found, ending = {}, Ending()\n    model = ").replace("bytes(model.save_raw(\"ubj\"))",
                                                                          "repr([ending.rounds, found, bytes(model.save_raw(\"ubj\"))]).encode()").replace(
    "40, elastic", "9, elastic")


def write_files(folder, program):
    """Writes the program and its rows to the folder."""
    (folder / "train.py").write_text(program, encoding="utf-8")
    rows = [f"{(7 * row) % 11} 1:{row % 13} 2:{row % 17} 3:{(row * row) % 19}" for row in range(400)]
    (folder / "rows.svm").write_text("\n".join(rows) + "\n", encoding="ascii")


class Job:
    """A job of dmlc-submit, run in a folder with its program and rows."""

    def __init__(self, folder, workers, *options, program=PROGRAM, cluster=("--cluster", "local", "--port", "0"), enter=list, **variables):
        """`cluster`: the options that choose the cluster. `enter`: wraps dmlc-submit's command line so that it runs elsewhere.
        `variables`: added to the environment."""
        self.folder = folder
        write_files(folder, program)
        self.output = open(folder / "output", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            enter([str(BIN / "dmlc-submit"), *cluster, "--num-workers", workers, *options, PYTHON, "train.py"]),
            stdout=self.output, stderr=subprocess.STDOUT, cwd=folder, env={**environment(), **variables})

    def wait_for(self, name, condition=lambda _: True):
        """Waits until a file in the folder is not empty and its text meets the condition; returns the text. Raises AssertionError if the
        job ends or LIMIT_S passes first."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and self.process.poll() is None:
            path = self.folder / name
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if text.strip() and condition(text):
                return text
            time.sleep(.02)
        raise AssertionError(f"{name} has not come:\n{self.text()}")

    def signal(self, worker, number):
        """Sends a signal to a worker's process."""
        os.kill(int(self.wait_for(f"pid-{worker}")), number)

    def kill_worker_1_three_times(self):
        """Kills each process of worker 1 during training; after the third one, the worker is not started again."""
        for _ in range(3):
            self.wait_for("round-1", lambda text: int(text) >= 3)
            (self.folder / "round-1").unlink()
            self.signal(1, signal.SIGKILL)
            (self.folder / "pid-1").unlink()

    def text(self):
        """The output so far."""
        self.output.seek(0)
        return self.output.read()

    def end(self, code=0):
        """Waits for the job to end, checks its exit code, and returns its output. Kills the job after LIMIT_S."""
        try:
            found = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            found = None
        text = self.text()
        self.output.close()
        assert found == code, f"exit code {found}, expected {code}:\n{text}"
        return text


@unittest.skipIf(VERSION < FIRST, "needs XGBoost 2.1")
class Elastic(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.model = cls.models(Job(pathlib.Path(folder), "1").end())[0][0]

    @staticmethod
    def models(text):
        """The model's digest and the number of workers, as printed by each worker."""
        return re.findall(r"model ([0-9a-f]{64}) of (\d+)", text)

    def test_00_a_killed_worker_is_replaced_and_the_model_is_the_same(self):
        job = Job(self.folder, "1:3", "--dashboard=127.0.0.1:0", "--log-dir", "logs", "--timeline", "timeline.json")
        job.wait_for("round-0", lambda text: int(text) >= 5)
        job.signal(0, signal.SIGKILL)
        text = job.end()
        self.assertEqual(self.models(text), [(self.model, "3")] * 3, text)
        self.assertRegex(text, r"worker 0 \(rank 0, host \S+, pid \d+\) was killed by signal 9 \(SIGKILL\); the other 2 go on, and it is started again")
        loss = r"generation 2 begins with 3 workers \(task 0, 1, 2\), \d+\.\d s after task 0 \(host \S+\) was (lost|killed by signal 9 \(SIGKILL\))"
        page, = self.folder.glob("logs/*.html")
        for place in (text, page.read_text(encoding="utf-8"), (self.folder / "timeline.json").read_text(encoding="utf-8")):
            self.assertRegex(place, loss)
        self.assertRegex(page.read_text(encoding="utf-8"), r'"generation":2,"between_generations":0?\.?[1-9]')

    def test_01_the_others_go_on_with_the_rows_of_a_worker_that_does_not_come_back(self):
        job = Job(self.folder, "1:3", "--replace-within", "0")
        job.kill_worker_1_three_times()
        text = job.end()
        self.assertEqual(self.models(text), [(self.model, "2")] * 2, text)
        self.assertIn("the other 2 go on without it: worker 1 has lost 3 workers within 10 minutes", text)

    def test_02_a_worker_that_is_asked_to_end_leaves_after_its_round(self):
        job = Job(self.folder, "1:2")
        job.wait_for("round-1", lambda text: int(text) >= 5)
        job.signal(1, signal.SIGTERM)
        text = job.end()
        self.assertEqual(self.models(text), [(self.model, "2")] * 2, text)
        self.assertIn("task 1 leaves the job", text)
        self.assertIn("exited with code 143; the other one goes on, and it is started again", text)

    def test_03_a_job_ends_when_fewer_than_its_least_number_are_left(self):
        job = Job(self.folder, "2:2", "--replace-within", "0")
        job.kill_worker_1_three_times()
        self.assertIn("1 of at least 2 workers are left", job.end(code=137))

    def test_04_an_error_of_the_program_ends_the_job(self):
        text = Job(self.folder, "1:2", program=PROGRAM.replace('"max_depth": 3', '"max_depth": -3')).end(code=1)
        self.assertIn("max_depth", text)
        self.assertNotIn("generation 2", text)

    def test_05_a_program_that_does_not_join_is_told_of(self):
        job = Job(self.folder, "1:2", program="import warren.xgboost\nprint('alone')\n")
        self.assertIn("no worker joined the job: 2 separate programs ran", job.end())

    def test_06_rows_in_memory_are_refused(self):
        program = PROGRAM.replace('warren.xgboost.Data("rows.svm?format=libsvm&indexing_mode=1")',
                                  'warren.xgboost.Data(__import__("numpy").ones((4, 2)), label=__import__("numpy").ones(4))')
        self.assertIn("elastic=True: the rows of 'data' are in this process, and would be lost with it", Job(self.folder, "1:2", program=program).end(code=1))

    def test_07_a_job_with_a_fixed_number_of_workers_is_refused(self):
        self.assertIn("elastic=True needs a job that may lose workers: start it with dmlc-submit --num-workers MIN:MAX",
                      Job(self.folder, "2").end(code=1))

    def alone(self, program):
        """The digest of the model that a program trains in one process."""
        return self.models(Job(self.folder, "1", program=program).end())[0][0]

    def assert_all_have(self, digest, text):
        self.assertEqual({found for found, _ in self.models(text)}, {digest}, text)

    def ends_with_the_model_of_one_process(self, program, plain=None):
        """Checks that a program with two workers, the second of which kills itself during training, trains the same model as the program
        `plain`, or the same one, alone."""
        alone = self.alone(plain or program)
        text = Job(self.folder, "1:2", program=program).end()
        self.assertIn("killed by signal 9", text)
        self.assert_all_have(alone, text)

    def test_08_callbacks_keep_their_state_wherever_a_worker_is_lost(self):
        for method in ("before_iteration", "after_iteration"):
            self.ends_with_the_model_of_one_process(with_callbacks(f"""
class Decay(warren.xgboost.ElasticCallback):
    rate, rounds = .3, []
    def {method}(self, model, epoch, evals_log):
        self.rate *= .9
        self.rounds = self.rounds + [epoch]
        model.set_param("learning_rate", self.rate)
    def save(self):
        return [self.rate, self.rounds]
    def restore(self, state):
        self.rate, self.rounds = state
    def after_training(self, model):
        print("model", hashlib.sha256(repr(self.rounds).encode()).hexdigest(), "of 0", flush=True)
        return model
""", "Decay()", method).replace('print("model", hashlib.sha256(bytes', 'print("digest", hashlib.sha256(bytes'))
            self.ends_with_the_model_of_one_process(with_callbacks(f"""
class Once(xgboost.callback.TrainingCallback):
    def {method}(self, model, epoch, evals_log):
        if epoch == 2:
            model.set_param("learning_rate", .05)
""", "Once()", method))

    def test_09_a_worker_that_comes_after_the_end_is_told_so(self):
        program = LATE.format("pathlib.Path('ended').exists()") + PROGRAM.replace("40, elastic", "8, elastic") + "pathlib.Path('ended').touch()\n"
        job = Job(self.folder, "1:2", "--replace-within", "0", program=program)
        job.wait_for("round-1", lambda text: int(text) >= 3)
        job.signal(1, signal.SIGKILL)
        self.assertIn("the job's work was done before this worker could take part in it", job.end())

    def test_10_an_error_of_the_program_is_not_taken_for_a_broken_connection(self):
        program = with_callbacks("""
class Logger(xgboost.callback.TrainingCallback):
    def before_iteration(self, model, epoch, evals_log):
        if epoch == 3 and os.environ["DMLC_TASK_ID"] == "1":
            raise ConnectionRefusedError("Connection refused by the log server")
""", "Logger()", "nothing")
        text = Job(self.folder, "1:2", program=program).end(code=1)
        self.assertIn("Connection refused by the log server", text)
        self.assertNotIn("generation 3", text)

    def test_11_files_that_change_are_not_mixed(self):
        program = with_callbacks("", "Killer()", "after_iteration").replace("os.kill(", 'os.utime("rows.svm", (1, 1)), os.kill(')
        self.assertIn("rows.svm has changed since the training began", Job(self.folder, "1:2", program=program).end(code=1))

    def test_12_evaluations_of_rows_that_others_have_taken_over_are_those_of_one_process(self):
        # Most of XGBoost's metrics sum floats as doubles, which is exact in any order. This one depends on the order of the rows.
        late = (LATE.format("int(pathlib.Path('round-2').read_text() or 0) >= 20")
                + "def in_order(values, _): return 'sum', float((values * range(len(values))).sum())\n")
        program = late + PROGRAM.replace("verbose_eval", 'evals=[(data, "train")], custom_metric=in_order, evals_result=found, verbose_eval').replace(
            "    model = ", "    found = {}\n    model = ").replace("bytes(model.save_raw(\"ubj\"))", "repr(found).encode()")
        alone = self.alone(program)
        (self.folder / "round-1").unlink(missing_ok=True)
        job = Job(self.folder, "1:3", "--replace-within", "0", program=program)
        job.wait_for("round-1", lambda text: int(text) >= 3)
        job.signal(0, signal.SIGKILL)  # its rows are then distributed to the other workers
        text = job.end()
        self.assertIn("begins with 2 workers", text)
        self.assert_all_have(alone, text)

    def test_13_a_job_that_loses_all_workers_goes_on_from_its_checkpoint(self):
        program = SAVED.replace("WHAT", "os.kill(os.getpid(), 9)").replace(
            "[ending]", '[ending, xgboost.callback.TrainingCheckPoint(".", "m", interval=1)]')
        alone = self.alone(program)
        for file in self.folder.glob("m_*"):
            file.unlink()
        text = Job(self.folder, "2:2", program=program).end()
        self.assertEqual(sorted(file.name for file in self.folder.glob("m_*")), [f"m_{round}.ubj" for round in range(1, 9)])
        self.assertRegex(text, "going on from round 4 of saved/[0-9a-f]{16}.ubj")
        self.assert_all_have(alone, text)
        self.assertEqual(os.listdir(self.folder / "saved"), [])
        text = Job(self.folder, "2", program=program.replace("elastic=True", "reproducible=True")).end(code=1)
        self.assertIn("checkpoint= needs elastic=True", text)

    def test_14_a_checkpoint_is_gone_on_from_by_the_same_training_only(self):
        program = SAVED.replace("WHAT", "raise LookupError('the end of this attempt')")
        Job(self.folder, "1:2", program=program).end(code=1)
        again = SAVED.replace("WHAT", "pass")
        text = Job(self.folder, "1:2", program=again.replace('"max_depth": 3', '"max_depth": 2').replace("9, elastic", "2, elastic")).end()
        self.assertRegex(text, r"saved has no checkpoint of this training, which starts from the beginning; [0-9a-f]{16}\.ubj there is from a training "
                               r"with other parameters \(max_depth: 3 there, 2 here\), another number of rounds")
        (self.folder / "rows.svm").touch()  # a new modification time, but the same rows
        text = Job(self.folder, "1:3", program=again).end()
        self.assertRegex(text, "going on from round [46] ")
        self.assert_all_have(self.alone(again), text)
        Job(self.folder, "1:2", program=program).end(code=1)
        other = 'text = pathlib.Path("rows.svm").read_text(); pathlib.Path("other.svm").write_text(text.replace(" 2:3 ", " 2:4 ", 1))\n'
        self.assertRegex(Job(self.folder, "1:2", program="import pathlib\n" + other + again.replace("rows.svm?", "other.svm?")).end(),
                         "has no checkpoint of this training.* with other data")
        # EarlyStopping's state must not be mistaken for that of the callback that prints evaluations.
        text = Job(self.folder, "1:2", program=again.replace("verbose_eval=False", "verbose_eval=True")).end()
        self.assertRegex(text, "going on from round [46] ")
        self.assert_all_have(self.alone(again), text)
        # The rows that are drawn depend on the order of all rows, but not on the number of workers.
        drawn = [one.replace('"nthread": 1', '"nthread": 1, "subsample": .5') for one in (program, again)]
        Job(self.folder, "1:2", program=drawn[0]).end(code=1)
        lines = (self.folder / "rows.svm").read_text(encoding="ascii").splitlines(True)
        moved = f'pathlib.Path("other.svm").write_text({"".join(lines[200:] + lines[:200])!r})\n'
        self.assertRegex(Job(self.folder, "1:2", program="import pathlib\n" + moved + drawn[1].replace("rows.svm?", "other.svm?")).end(),
                         r"has no checkpoint of this training.* with other options "
                         r"\(order of the rows: [0-9a-f]{16} there, [0-9a-f]{16} here\)")
        text = Job(self.folder, "1:3", program=drawn[1]).end()
        self.assertRegex(text, "going on from round [46] ")
        self.assert_all_have(self.alone(drawn[1]), text)
        self.assertIn("FileExistsError: checkpoint='rows.svm' is to be a folder, which rank 0 cannot create: File exists; "
                      "give another folder",
                      Job(self.folder, "1", program=again.replace('Checkpoints("saved"', 'Checkpoints("rows.svm"')).end(code=1))
        wrong = again.replace("return self.rounds, {}", "return object()")
        self.assertIn("TypeError: checkpoint: the state that an ElasticCallback has saved cannot be written to a file: builtins.object is not plain",
                      Job(self.folder, "1:2", program=wrong).end(code=1))

    def test_15_a_worker_that_is_noticed_of_its_hosts_end_leaves_after_its_round(self):
        often = "import warren._launch.preemption\nwarren._launch.preemption.EVERY_S = .1\n"
        job = Job(self.folder, "1:2", "--preemption-signal", "SIGUSR1", "--preemption-notice", "notice", program=often + PROGRAM)
        job.wait_for("round-1", lambda text: int(text) >= 3)
        job.signal(1, signal.SIGUSR1)
        job.wait_for("output", lambda text: "generation 2 begins" in text)
        (self.folder / "notice").touch()
        job.wait_for("output", lambda text: "leaves the job" in text[text.index("generation 2 begins"):])
        (self.folder / "notice").unlink()
        text = job.end()
        self.assert_all_have(self.model, text)
        self.assertRegex(text, r"generation 2 begins with \d workers? \(task .*\), \d\.\d s after task 1 left")
        self.assertIn("notice says that this machine will be taken back: this worker leaves the job", text)

    def test_16_the_communicator_can_be_entered_again(self):
        # The second worker is killed in this fold, and its new process runs the program from the beginning.
        for fold in (0, 1, 2):
            program = PROGRAM[:PROGRAM.index("with warren")] + f"""
class Killer(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if (epoch, fold, os.environ["DMLC_TASK_ID"], os.environ["DMLC_NUM_ATTEMPT"], os.environ["DMLC_NUM_WORKER"]) == (2, {fold}, "1", "0", "2"):
            os.kill(os.getpid(), 9)

found = []
for fold in range(3):
    with warren.xgboost.communicator():
        for depth in (2, 3):
            data = warren.xgboost.Data("rows.svm?format=libsvm&indexing_mode=1")
            params = {{"max_depth": depth + fold, "nthread": 1}}
            model = warren.xgboost.train(params, data, 4, elastic=True, callbacks=[Killer()], verbose_eval=False)
            found.append(bytes(model.save_raw("ubj")))
        size = warren.xgboost.get_world_size()
print("model", hashlib.sha256(b"".join(found)).hexdigest(), "of", size, flush=True)
"""
            alone = self.models(Job(self.folder, "1:1", program=program).end())
            text = Job(self.folder, "1:2", program=program).end()
            self.assertIn("killed by signal 9", text)
            self.assertEqual(self.models(text), [(alone[0][0], "2")] * 2, text)

    def test_16b_a_worker_lost_between_two_trainings_is_replaced_or_the_job_fails(self):
        program = PROGRAM[:PROGRAM.index("with warren")] + """
with warren.xgboost.communicator():
    for depth in (2, 3):
        data = warren.xgboost.Data("rows.svm?format=libsvm&indexing_mode=1")
        warren.xgboost.train({"max_depth": depth, "nthread": 1}, data, 4, elastic=True, verbose_eval=False)
        if warren.xgboost.get_rank() == 0:
            if depth == 2 and (os.environ["DMLC_NUM_ATTEMPT"], os.environ["DMLC_NUM_WORKER"]) == ("0", "2"):
                time.sleep(1)  # the other worker begins the next training
                os.kill(os.getpid(), 9)
            print("saved", depth, flush=True)
"""
        text = Job(self.folder, "1:2", "--replace-within", "0", program=LATE.format("False") + program).end(code=1)
        self.assertIn("RuntimeError: a worker was lost after the training, and no other one has come", text)
        self.assertNotIn("saved", text)
        text = Job(self.folder, "1:2", program=program).end()
        self.assertEqual(sorted(re.findall(r"saved \d", text)), ["saved 2", "saved 3"], text)

    def test_17_random_numbers_are_those_of_plain_xgboost(self):
        draws = '"subsample": 0.6' + (', "colsample_bytree": 0.7, "colsample_bynode": 0.7' if VERSION >= (3, 3) else "")
        program = PROGRAM.replace('"max_depth": 3', f'"max_depth": 3, {draws}').replace("40, elastic", "12, elastic")
        plain = program.replace("warren.xgboost.train({", 'xgboost.train({"tree_method": "hist", ').replace(", elastic=True, callbacks=[Pause()]", "").replace(
            "    data = ", "    pass\n    data = ").replace("warren.xgboost.Data(", "warren.xgboost.load_dmatrix(quantile=True, uri=")
        killer = with_callbacks("", "Killer()", "after_iteration").partition("class Killer")[2].partition("class Pause")[0]
        program = program.replace("class Pause", f"class Killer{killer}class Pause").replace("[Pause()]", "[Pause(), Killer()]")
        self.ends_with_the_model_of_one_process(program, plain)

    def test_18_random_disturbances_leave_the_model_of_one_process(self):
        done = subprocess.run([sys.executable, "-B", str(FOLDER / "elastic/chaos.py"), "--jobs", str(JOBS), "--first", str(FIRST_JOB), "--parallel", "3"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-20000:])

    @unittest.skipIf(ssh_hosts.why_not(), "needs root and sshd")
    def test_19_hosts_come_and_go_and_the_model_is_the_same(self):
        hosts = ssh_hosts.SshHosts(self.folder, 3)
        self.addCleanup(hosts.close)
        names = self.folder / "hosts"

        def write(text):
            names.with_suffix(".new").write_text(text, encoding="ascii")
            names.with_suffix(".new").rename(names)

        write("n0\nn1\n")
        slowly = PROGRAM.replace("time.sleep(.1)", "time.sleep(.5 if 2 < epoch and not os.path.exists('go') else .01)")
        job = Job(self.folder, "1:2", *ENVIRONMENT_OPTIONS, enter=hosts.inside,
                  cluster=["--cluster", "ssh", "--host-file", "hosts", *hosts.options()], program=slowly)
        job.wait_for("round-1", lambda text: int(text) >= 3)
        write("n2\n")  # both hosts leave, and a new one joins
        job.wait_for("output", lambda text: "generation 4 begins with 1 worker" in text)
        write("n2\nn0\n")
        job.wait_for("output", lambda text: "generation 5 begins with 2 workers" in text)
        (self.folder / "go").touch()
        text = job.end()
        self.assertEqual(self.models(text), [(self.model, "2")] * 2, text)
        self.assertRegex(text, r"worker 0 \(rank \d, host n0, pid \d+\) stays on n0, which has gone, until another worker has joined")
        for worker in (0, 1):
            self.assertRegex(text, rf"worker {worker} \(rank \d, host n{worker}, pid \d+\) was killed by signal 15 \(SIGTERM\), as it was asked to leave")
        self.assertNotIn("is broken", text)

    @unittest.skipIf(stand_in_kubernetes.why_not(), str(stand_in_kubernetes.why_not()))
    def test_20_pods_are_lost_and_the_model_is_the_same(self):
        self.addCleanup(stand_in_kubernetes.own_network())
        cluster = stand_in_kubernetes.StandInKubernetes(self.folder / "kubernetes", self.folder)
        self.addCleanup(cluster.close)
        cluster.image_path = f"{BIN}:{os.environ['PATH']}"
        job = Job(self.folder, "1:2", *ENVIRONMENT_OPTIONS,
                  cluster=["--cluster", "kubernetes", "--kube-worker-image", "an/image"], **cluster.environment())

        def pod_of(worker):
            key = f"batch.kubernetes.io/job-completion-index={worker}"
            found = cluster.run("get", "pods", "-l", key, "-o", "json", capture_output=True)
            return next(one["metadata"]["name"] for one in json.loads(found.stdout)["items"] if one["status"]["phase"] == "Running")

        job.wait_for("round-1", lambda text: int(text) >= 3)
        cluster.kill_container(pod_of(1))
        job.wait_for("output", lambda text: "generation 2 begins with 2 workers" in text)
        cluster.run("delete", "pod", pod_of(0), "--wait=false", capture_output=True)
        text = job.end()
        self.assertEqual(self.models(text), [(self.model, "2")] * 2, text)
        self.assertRegex(text, r"worker 1 \(.*\) was killed because it used more memory than its container's limit .*; the other one goes on")
        self.assertRegex(text, r"worker 0 \(.*\) was told to end: its pod \S+ was deleted; the other one goes on")
        self.assertIn("task 0 leaves the job", text)

    def test_21_a_tracker_that_takes_over_forms_the_next_generation(self):
        write_files(self.folder, PROGRAM)
        outputs = []

        def tracker():
            return self.enterContext(local_tracker("1:2", "--state", self.folder / "state"))

        def start(task):
            outputs.append(self.folder / f"output-{len(outputs)}")
            with outputs[-1].open("w", encoding="utf-8") as file:
                made = subprocess.Popen([PYTHON, "train.py"], cwd=self.folder, stdout=file, stderr=subprocess.STDOUT,
                                        env={**environment(), **first.env, "DMLC_TASK_ID": str(task), "DMLC_NUM_ATTEMPT": "0"})
            self.addCleanup(lambda: made.poll() is None and made.kill() or made.wait())
            return made

        def round_of(task):
            path = self.folder / f"round-{task}"
            return int(path.read_text(encoding="ascii") or 0) if path.exists() else 0

        first = tracker()
        one, two = start(0), start(1)
        wait_for(lambda: round_of(0) >= 3, LIMIT_S, "a round")
        first.process.kill()
        first.process.wait()
        begun = round_of(0)
        wait_for(lambda: round_of(0) >= begun + 2, LIMIT_S, "a round without a tracker")
        two.kill()
        second = tracker()
        self.assertEqual(second.env, first.env)
        three = start(1)
        for worker in one, three:
            self.assertEqual(worker.wait(LIMIT_S), 0, [output.read_text(encoding="utf-8")[-3000:] for output in outputs])
        text = "".join(output.read_text(encoding="utf-8") for output in outputs)
        self.assertEqual(self.models(text), [(self.model, "2")] * 2, text)
        code, log = second.finish()
        self.assertEqual(code, 0, log)
        self.assertIn("generation 2 begins with 2 workers", log)

    def hanging(self, limit_s, module):
        """A program in which worker 0 kills itself in the first attempt and worker 1 then hangs, as it may in XGBoost's own communicator:
        it waits for a lock that is never released, in code of `module`. `limit_s`: the time after which a call is found to hang."""
        return PROGRAM.replace("class Pause", f"""
import warren._launch.hang
import warren.data._peers
warren._launch.hang.LIMIT_S = {limit_s}

class Hanging(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch == 4 and os.environ["DMLC_NUM_ATTEMPT"] == "0":
            if os.environ["DMLC_TASK_ID"] == "0":
                os.kill(os.getpid(), 9)
            elif os.environ["DMLC_TASK_ID"] == "1":
                exec("import _thread; lock = _thread.allocate_lock(); lock.acquire(); lock.acquire()", dict(vars({module})))

class Pause""").replace("[Pause()]", "[Pause(), Hanging()]")

    def test_22_a_worker_that_hangs_in_a_call_of_xgboost_is_replaced(self):
        text = Job(self.folder, "1:3", program=self.hanging(2, "xgboost.core")).end()
        self.assertEqual(self.models(text), [(self.model, "3")] * 3, text)
        self.assertIn("a call of xgboost has done nothing for 2 s, although its connections have been shut down: this process ends, and another one "
                      "takes its place", text)
        self.assertRegex(text, r"worker 1 \(rank \d, host \S+, pid \d+\) exited with code 143; the other 2 go on, and it is started again")

    def test_23_a_worker_that_hangs_ends_after_the_work_is_done(self):
        # After 30 s, the other workers continue without it.
        text = Job(self.folder, "1:3", "--replace-within", "0", program=self.hanging(36, "warren.data._peers").replace("40, elastic", "8, elastic")).end()
        self.assertIn("this process ends, and the job's work is done without it", text)
        self.assertEqual({workers for _, workers in self.models(text)}, {"2"}, text)

    def test_24_survivors_that_read_rows_stop_when_another_worker_comes(self):
        slow = """
import os, pathlib, time
import warren._elastic.rows, warren._xgboost.elastic.rows

def text(files, share, check, read=warren._elastic.rows.Files._text):
    # The survivor reads until the new process has come, however long that takes.
    while pathlib.Path("round-0").exists() and os.environ["DMLC_NUM_ATTEMPT"] == "0":
        check()
        time.sleep(.02)
    return read(files, share, check)

def hold(rows, shares, *more, hold=warren._xgboost.elastic.rows.Rows.hold):
    hold(rows, shares, *more)
    print("holds", len(shares), "shares", flush=True)

warren._elastic.rows.Files._text, warren._xgboost.elastic.rows.Rows.hold = text, hold
warren._xgboost.elastic.rows._BATCH_VALUES = 200
"""
        job = Job(self.folder, "1:2", "--replace-within", "0", program=slow + PROGRAM)
        job.wait_for("round-0", lambda text: int(text) >= 5)
        job.signal(1, signal.SIGKILL)
        text = job.end()
        self.assertEqual(self.models(text), [(self.model, "2")] * 2, text)
        self.assertEqual(text.count("holds 16 shares"), 3, text)
        self.assertNotIn("holds 32 shares", text)

    def test_25_a_matrix_made_of_batches_is_that_of_all_rows_and_can_be_given_up(self):
        program = """
import numpy as np, scipy.sparse, xgboost
from warren._elastic.session import Change
from warren._xgboost.elastic import rows
from warren.data._table import Table

def model(table, values, check=lambda: None):
    rows._BATCH_VALUES = values
    ref = xgboost.QuantileDMatrix(table.features)
    matrix = rows._matrix_of(table, {"ref": ref, "max_bin": 256, "nthread": 1}, check)
    params = {"max_depth": 3, "nthread": 1, "objective": "reg:squarederror" if table.qid is None else "rank:ndcg"}
    return bytes(xgboost.train(params, matrix, 3).save_raw("ubj"))

def stop():
    raise Change

random = np.random.default_rng(1)
features = random.random((500, 4), np.float32)
features[random.random(features.shape) < .1] = np.nan
label, weight = random.integers(0, 3, 500).astype(np.float32), random.random(500, np.float32)
names, types = list("abcd"), ["q"] * 4
for table in (Table(features, names, types, label, weight, None, None, {}),
              Table(features, names, types, label, None, np.arange(500) // 7, None, {}),
              Table(scipy.sparse.csr_matrix(np.nan_to_num(features)), None, None, label, None, None, weight, {})):
    assert model(table, 400) == model(table, 1 << 20)
    try:
        model(table, 400, stop)
    except Change:
        continue
    raise AssertionError("the matrix was made")
"""
        subprocess.run([PYTHON, "-c", program], check=True, env=environment())


if __name__ == "__main__":
    unittest.main()
