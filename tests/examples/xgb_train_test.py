"""xgb-train, mostly in one process: its errors, its output, how it resumes, and its agreement with XGBoost's own command line."""
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import unittest

from programs import LIMIT_S, SUBMIT, XGB_TRAIN, XGBOOST, ProgramTest, environment

CONFIG = """\
objective = binary:logistic
max_depth = 3
eta = 0.5
nthread = 1
num_round = 6
data = train.txt
eval[test] = test.txt
model_out = final.model
"""


class XgbTrainTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.make_data("train.txt", rows=400, features=8)
        self.make_data("test.txt", rows=100, first_row=400, features=8)
        self.write("a.conf", CONFIG)

    def train(self, *arguments: str, **options) -> str:
        return self.run_well(XGB_TRAIN, "a.conf", *arguments, **options)

    def started(self, *arguments: str, **options) -> subprocess.Popen:
        """Starts a run, whose standard output can be read while it trains."""
        return subprocess.Popen([XGB_TRAIN, "a.conf", *arguments], cwd=self.folder, env=environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, **options)

    def dump(self, model: str) -> str:
        return self.run_well(XGB_TRAIN, "task=dump", "model_in=" + model, "name_dump=stdout", "dump_stats=1")


class BadConfiguration(XgbTrainTest):
    def refused(self, content: str, *arguments: str) -> str:
        self.write("bad.conf", content)
        message = self.run_badly(2, XGB_TRAIN, "bad.conf", *arguments)
        self.assertNotIn("final.model", self.files())
        return message

    def test_a_setting_that_is_none_is_named_with_its_place(self):
        self.assertIn("bad.conf:9: found: oops; expected: key = value", self.refused(CONFIG + "oops\n"))
        self.assertIn("bad.conf:9: found num_round = ten; expected a whole number", self.refused(CONFIG + "num_round = ten\n"))
        self.assertIn("argument 'task=fly': found task = fly; expected train, pred or dump", self.refused(CONFIG, "task=fly"))
        self.assertIn("argument 'eta': expected key=value", self.refused(CONFIG, "eta"))
        self.assertIn("argument '--eta=3': no such option", self.refused(CONFIG, "--eta=3"))

    def test_a_booster_parameter_that_xgboost_refuses_is_named_with_file_and_line(self):
        for line, complaint in (("eta = slow", "expect float but value='slow'"),
                                ("eta = fast", "could not be parsed: 'ast'"),
                                ("max_depth = deep", "expect int but value='deep'"),
                                ("objective = magic", "Unknown objective function: `magic`"),
                                ("tree_method = magic", "Invalid Input: 'magic'")):
            with self.subTest(line=line):
                message = self.refused(CONFIG + line + "\n")
                self.assertIn(f"bad.conf:9: found {line}; ", message)
                self.assertIn(complaint, message)
                self.assertNotIn("Stack trace", message)

    def test_a_missing_file_or_a_folder_is_no_configuration(self):
        self.assertIn("nowhere.conf: cannot read", self.run_badly(2, XGB_TRAIN, "nowhere.conf"))
        self.assertIn("found a folder", self.run_badly(2, XGB_TRAIN, "."))

    def test_the_model_of_one_process_is_refused_with_what_has_it(self):
        message = self.refused(CONFIG + "reproducible = 1\n")
        self.assertIn("bad.conf:9: found reproducible = 1; expected 0: the model of one process", message)
        self.assertIn("warren.xgboost.train", message)

    def test_no_arguments_at_all_are_refused(self):
        self.assertIn("expected a configuration file", self.run_badly(2, XGB_TRAIN))

    def test_help_and_version_explain_themselves(self):
        text = self.run_well(XGB_TRAIN, "--help")
        for word in ("usage:", "save_period", "resume", "eval[NAME]", "Exit code"):
            self.assertIn(word, text)
        self.assertRegex(self.run_well(XGB_TRAIN, "-V"), r"XGBoost \d+\.\d+\.\d+")

    def test_a_misspelt_parameter_is_warned_of(self):
        done = self.run_program(XGB_TRAIN, "a.conf", "max_dept=3")
        self.assertEqual(done.returncode, 0)
        self.assertIn("max_dept", done.stderr.decode())


class Launchers(XgbTrainTest):
    def test_processes_of_a_launcher_that_cannot_join_are_refused(self):
        for seen in ({"PMI_RANK": "0", "PMI_SIZE": "2"}, {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
                     {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"},
                     {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}):
            message = self.run_badly(1, XGB_TRAIN, "a.conf", env={**environment(), **seen, "WARREN_XGBOOST_ENGINE": "own"})
            self.assertIn("=2, so this is one of 2 processes of a launcher", message)
            self.assertIn("dmlc-submit --num-workers 2", message)
            self.assertNotIn("final.model", self.files())
            self.run_well(XGB_TRAIN, "a.conf", env={**environment(), **seen, "WARREN_BOOTSTRAP": "none"})
            os.remove(self.path("final.model"))

    def test_a_process_that_is_told_to_join_a_job_does_not_train_alone(self):
        for told in ({"WARREN_BOOTSTRAP": "slurm"}, {"WARREN_BOOTSTRAP": "tracker"}, {"RABIT_BOOTSTRAP": "slurm"}):
            message = self.run_badly(1, XGB_TRAIN, "a.conf", env={**environment(), **told})
            self.assertIn(f"WARREN_BOOTSTRAP={next(iter(told.values()))}", message)
            self.assertNotIn("final.model", self.files())
        own = {"WARREN_BOOTSTRAP": "slurm", "WARREN_XGBOOST_ENGINE": "own"}  # XGBoost's own communication does not know Slurm
        self.assertEqual(len(self.train(env={**environment(), **own}).splitlines()), 6)

    def test_the_address_null_names_no_tracker(self):
        self.train(env={**environment(), "DMLC_TRACKER_URI": "NULL"})
        self.assertTrue(self.read("final.model"))

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "SKIPPED: no mpirun.mpich; apt-get install mpich")
    def test_processes_of_mpirun_are_one_job_over_warrens_engine(self):
        said = self.run_well(shutil.which("mpirun.mpich"), "-n", "2", XGB_TRAIN, "a.conf", "base_score=0.5")
        self.assertEqual(len(said.splitlines()), 6, said)
        self.assertTrue(self.read("final.model"))


class BadData(XgbTrainTest):
    def refused(self, *arguments: str) -> str:
        message = self.run_badly(1, XGB_TRAIN, "a.conf", *arguments)
        self.assertNotIn("final.model", self.files())
        return message

    def test_a_missing_file_is_named(self):
        for option in ("data=nowhere.txt", "eval[test]=nowhere.txt?format=libsvm"):
            self.assertIn("nowhere.txt: looking for it failed: No such file or directory", self.refused(option))

    def test_a_file_without_rows_or_a_folder_without_files_is_named(self):
        self.write("empty.txt", "")
        self.write("blank.txt", "\n# nothing\n\n")
        os.mkdir(self.path("nothing"))
        self.assertIn("empty.txt: holds no rows", self.refused("data=empty.txt"))
        self.assertIn("blank.txt: holds no rows", self.refused("data=blank.txt"))
        self.assertIn("nothing: the folder has no data files", self.refused("data=nothing"))

    def test_a_bad_line_is_named_with_file_line_and_column(self):
        lines = self.read("train.txt").decode().splitlines()
        lines[200] = "1 1:0.5 2:abc"
        self.write("bad.txt", "\n".join(lines) + "\n")
        for option in ("data=bad.txt", "eval[test]=bad.txt", "data=train.txt;bad.txt"):
            with self.subTest(option=option):
                self.assertIn("bad.txt:201:9: found '2:abc', expected index:value with a decimal number",
                              self.refused(option))

    def test_a_file_that_would_crash_xgboosts_reader_trains(self):
        self.write("alone.txt", "1 1 2 3\n0 2\n" * 20)
        self.write("ones.txt", "1 1:1 2:1 3:1\n0 2:1\n" * 20)
        self.train("data=alone.txt", "eval[test]=alone.txt")
        alone = self.dump("final.model")
        self.train("data=ones.txt", "eval[test]=ones.txt")
        self.assertEqual(self.dump("final.model"), alone)

    def test_bad_rows_are_left_out_when_asked_and_counted(self):
        self.write("bad.txt", self.read("train.txt").decode() + "nonsense\n1 x:1\n")
        self.train()
        plain = self.dump("final.model")
        done = self.run_program(XGB_TRAIN, "a.conf", "data=bad.txt?bad_rows=skip")
        self.assertIn("2 bad rows of bad.txt?bad_rows=skip were left out, such as bad.txt:401:1: found 'nonsense'",
                      done.stderr.decode())
        self.assertEqual(self.dump("final.model"), plain)

    def test_compressed_data_is_the_same_data(self):
        self.train()
        plain = self.dump("final.model")
        self.write("train.txt.gz", gzip.compress(self.read("train.txt")))
        self.train("data=train.txt.gz")
        self.assertEqual(self.dump("final.model"), plain)

    def test_data_of_every_accepted_shape_trains(self):
        self.write("odd.txt", b"\xef\xbb\xbf# top\r\n+1:0.5\t1:1e-1  2:-.5 # tail\r\n\r\n0:2 2:3.\r1:1 7:1\n0:1")
        text = self.train("data=odd.txt?format=libsvm", "eval_train=1", "num_round=1", "eval[test]=odd.txt")
        self.assertIn("[0]\ttest-logloss:", text)

    def test_indices_that_count_from_one_are_checked_so(self):
        self.write("zero.txt", "1 0:1\n0 1:1\n")
        self.assertIn("zero.txt:1:3", self.refused("data=zero.txt?format=libsvm&indexing_mode=1"))

    def test_csv_without_a_column_of_labels_is_refused_except_for_predictions(self):
        self.write("table.csv", "1,0.5\n0,0.25\n" * 20)
        self.write("features.csv", "0.5\n0.25\n")
        table = "table.csv?format=csv"
        for arguments in ([f"data={table}"], [f"data={table}&label_column=0", f"eval[test]={table}"]):
            self.assertIn(f"{table}: names no column with labels; add label_column=0", self.refused(*arguments))
        self.train(f"data={table}&label_column=0", f"eval[test]={table}&label_column=0")
        common = ["task=pred", "model_in=final.model", "name_pred=stdout"]
        self.assertEqual(self.train(*common, "test:data=features.csv?format=csv").splitlines(),
                         self.train(*common, f"test:data={table}&label_column=0").splitlines()[:2])

    def test_a_part_is_for_one_process(self):
        message = self.run_badly(1, SUBMIT, "--cluster", "local", "--num-workers", "2", XGB_TRAIN, "a.conf", "data=train.txt?part=0&n=2")
        self.assertIn("train.txt?part=0&n=2: with part and n, all 2 workers would read the same rows", message)
        self.assertNotIn("final.model", self.files())
        self.train("data=train.txt?part=0&n=2")

    def test_a_cache_gives_the_same_model(self):
        self.train("tree_method=hist")
        plain = self.dump("final.model")
        self.train("tree_method=hist", "data=train.txt?format=libsvm#cache")
        self.assertEqual(self.dump("final.model"), plain)


class Models(XgbTrainTest):
    LONG_RUN = ("data=train.txt#rows", "num_round=100000")

    def test_pages_on_disk_go_with_the_run_however_it_ends(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL):
            with self.started(*self.LONG_RUN) as process:
                process.stdout.readline()
                self.assertTrue([file for _, _, files in os.walk(self.folder) for file in files if ".page" in file])
                process.send_signal(number)
                self.assertEqual(process.wait(LIMIT_S), -number)
            left = [file for _, _, files in os.walk(self.folder) for file in files if ".page" in file]
            self.assertEqual(bool(left), number == signal.SIGKILL, left)
        # A run first removes the pages of killed runs, even of runs that read another part of the data. It keeps folders with other names.
        for name in ("rows.part1-of-5.xgboost.abcdef", "rows.part1-of-5.xgboost.mine", "rows.partial"):
            os.mkdir(os.path.join(self.folder, name))
            with open(os.path.join(self.folder, name, "lock"), "w", encoding="ascii"):
                pass
        self.train("data=train.txt#rows")
        self.assertEqual(sorted(name for name in self.files() if name.startswith("rows")),
                         ["rows", "rows.part1-of-5.xgboost.mine", "rows.partial"])
        for name in ("rows.part1-of-5.xgboost.mine", "rows.partial"):
            shutil.rmtree(os.path.join(self.folder, name))
        self.run_badly(1, XGB_TRAIN, "a.conf", "data=train.txt#rows", "tree_method=hist", "subsample=0.5",
                       "sampling_method=gradient_based")
        self.assertEqual([name for name in self.files() if name.startswith("rows")], ["rows"])

    def test_a_signal_that_was_ignored_at_the_start_stays_ignored(self):
        with self.started(*self.LONG_RUN, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:  # as nohup does
            process.stdout.readline()
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(LIMIT_S), -signal.SIGTERM)

    def test_pages_of_a_run_that_lives_are_left_to_it(self):
        with self.started(*self.LONG_RUN) as process:
            process.stdout.readline()
            self.train("data=train.txt#rows")
            for _ in range(3):
                self.assertRegex(process.stdout.readline(), r"^\[\d+\]")
            process.kill()
            self.assertEqual(process.wait(LIMIT_S), -signal.SIGKILL)

    def test_evaluation_lines_appear_once_a_round(self):
        lines = self.train("eval_train=1").splitlines()
        self.assertEqual(len(lines), 6)
        for round_number, line in enumerate(lines):
            self.assertRegex(line, rf"^\[{round_number}\]\ttest-logloss:0\.\d+\ttrain-logloss:0\.\d+$")

    def test_an_ending_chooses_the_format(self):
        self.train("model_out=m.json")
        self.assertEqual(len(json.loads(self.read("m.json"))["learner"]["gradient_booster"]["model"]["trees"]), 6)
        self.train("model_out=m.ubj")
        self.train("model_out=m.model")
        self.assertEqual(self.read("m.ubj"), self.read("m.model"))
        self.assertEqual(self.dump("m.json"), self.dump("m.ubj"))

    def test_without_model_out_the_last_round_names_the_model(self):
        self.train("model_out=NULL", "model_dir=models")
        self.assertEqual(os.listdir(self.path("models")), ["0006.model"])

    def test_a_failed_write_leaves_the_old_model_and_nothing_beside_it(self):
        self.train()
        old, files = self.read("final.model"), self.files()

        def allow_little():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        message = self.run_badly(1, XGB_TRAIN, "a.conf", "num_round=7", preexec_fn=allow_little)
        self.assertIn("cannot write", message)
        self.assertIn("File too large", message)
        self.assertEqual(self.read("final.model"), old)
        self.assertEqual(self.files(), files)

    def test_a_full_disk_is_an_error(self):
        self.assertIn("No space left", self.run_badly(1, XGB_TRAIN, "a.conf", "model_out=/dev/full"))

    def test_a_place_that_cannot_be_written_is_known_before_the_first_round(self):
        done = self.run_program(XGB_TRAIN, "a.conf", "model_out=no/such/folder")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, b"")
        self.assertIn("no/such", done.stderr.decode())

    def test_training_continues_from_model_in(self):
        self.train("num_round=4")
        self.train("num_round=2", "model_in=final.model", "model_out=more.model")
        self.train()
        self.assertEqual(self.dump("more.model"), self.dump("final.model"))

    def test_a_broken_model_in_is_an_error(self):
        self.train("model_out=whole.model")
        self.write("cut.model", self.read("whole.model")[:-100])
        self.write("junk.model", "{nothing}")
        self.assertIn("cut.model: is truncated", self.run_badly(1, XGB_TRAIN, "a.conf", "model_in=cut.model"))
        self.assertIn("XGBoost: ", self.run_badly(1, XGB_TRAIN, "a.conf", "model_in=junk.model"))
        self.assertIn("nowhere.model: cannot read", self.run_badly(1, XGB_TRAIN, "a.conf", "model_in=nowhere.model"))


class Resuming(XgbTrainTest):
    SAVING = ("num_round=6", "save_period=2", "model_dir=models")

    def models(self) -> list:
        return sorted(os.listdir(self.path("models")))

    def kill_after_round(self, round_number: int, *arguments: str) -> None:
        """Kills a run once it has printed this round's line."""
        with self.started(*arguments) as process:
            for line in process.stdout:
                if line.startswith(f"[{round_number}]"):
                    process.kill()
                    break
            self.assertEqual(process.wait(LIMIT_S), -signal.SIGKILL)

    def test_every_kth_round_is_saved(self):
        self.train("num_round=5", "save_period=2", "model_dir=models")
        self.assertEqual(self.models(), ["0002.model", "0004.model"])
        self.assertTrue(self.read("final.model"))

    def test_two_runs_never_save_their_models_in_one_folder(self):
        with self.started("num_round=100000", "save_period=50000", "model_dir=models") as process:
            process.stdout.readline()
            message = self.run_badly(1, XGB_TRAIN, "a.conf", *self.SAVING)
            self.assertIn("another run is saving its models in model_dir=models; give each run its own folder", message)
            process.kill()
            process.wait(LIMIT_S)
        self.train(*self.SAVING)
        self.assertEqual(self.models(), ["0002.model", "0004.model", "0006.model"])

    def test_a_run_that_lost_its_end_gives_the_undisturbed_model(self):
        for booster in (["tree_method=exact"], ["tree_method=approx"], ["tree_method=hist"],
                        *(["tree_method=" + method, drawing] for method in ("exact", "approx", "hist")
                          for drawing in ("subsample=0.5", "colsample_bytree=0.5", "colsample_bylevel=0.5",
                                          "colsample_bynode=0.4")),
                        ["tree_method=hist", "subsample=0.5", "colsample_bytree=0.5", "seed=3"],
                        ["tree_method=hist", "subsample=0.5", "num_parallel_tree=3"],
                        ["tree_method=hist", "subsample=0.5", "objective=multi:softprob", "num_class=2"],
                        ["booster=dart", "rate_drop=0.3"], ["booster=dart", "rate_drop=0.3", "skip_drop=0.5"],
                        ["booster=dart", "rate_drop=0.1", "one_drop=1", "sample_type=weighted"],
                        ["booster=dart", "rate_drop=0.3", "subsample=0.5"],
                        ["booster=gblinear", "updater=shotgun"], ["booster=gblinear", "updater=coord_descent"],
                        *(["booster=gblinear", "updater=coord_descent", "feature_selector=" + selector]
                          for selector in ("random", "shuffle", "greedy", "thrifty"))):
            with self.subTest(booster=booster):
                self.train(*self.SAVING, *booster, "resume=0")
                whole = self.read("final.model")
                for lost in ("models/0006.model", "final.model"):
                    os.remove(self.path(lost))
                text = self.train(*self.SAVING, *booster)
                self.assertEqual(text.splitlines()[0], "resuming from models/0004.model at round 4")
                self.assertEqual(re.findall(r"^\[(\d+)\]", text, re.M), ["4", "5"])
                self.assertEqual(self.read("final.model"), whole)

    def test_a_ranking_that_lost_its_end_gives_the_undisturbed_model(self):
        self.write("ranking.txt", "".join(f"{row % 3} qid:{row // 10} 0:{row % 7} 1:{row % 11}\n" for row in range(300)))
        ranking = ("data=ranking.txt", "eval[test]=ranking.txt", "tree_method=hist", *self.SAVING)
        for objective in ("rank:pairwise", "rank:ndcg"):
            with self.subTest(objective=objective):
                self.train(*ranking, "objective=" + objective, "resume=0")
                whole = self.read("final.model")
                os.remove(self.path("models/0006.model"))
                self.assertIn("resuming from models/0004.model", self.train(*ranking, "objective=" + objective))
                self.assertEqual(self.read("final.model"), whole)

    def test_a_killed_run_carries_on_where_it_was(self):
        self.train()
        undisturbed = self.dump("final.model")
        os.remove(self.path("final.model"))
        long_run = ("num_round=100000", "save_period=2", "model_dir=models")
        self.kill_after_round(7, *long_run)
        self.assertNotIn("final.model", self.files())
        newest = max(int(name[:4]) for name in self.models() if name.endswith(".model"))
        self.assertGreaterEqual(newest, 6)
        rounds = newest + 3
        text = self.train(f"num_round={rounds}", "save_period=2", "model_dir=models")
        self.assertIn(f"resuming from models/{newest:04}.model at round {newest}\n", text)
        resumed = self.dump("final.model")
        self.assertTrue(resumed.startswith(undisturbed))
        self.train(f"num_round={rounds}")
        self.assertEqual(self.dump("final.model"), resumed)

    def test_a_finished_run_has_nothing_left_to_train(self):
        self.train(*self.SAVING)
        whole = self.read("final.model")
        os.remove(self.path("final.model"))
        self.assertEqual(self.train(*self.SAVING), "resuming from models/0006.model at round 6\n")
        self.assertEqual(self.read("final.model"), whole)

    def test_models_of_another_run_are_not_resumed_from(self):
        self.train(*self.SAVING)
        self.make_data("train.txt", rows=400, features=8, seed=9)
        self.make_data("copy.txt", rows=400, features=8)
        for change in (["eta=0.1"], [], ["data=copy.txt", "model_in=final.model"]):
            with self.subTest(change=change):
                text = self.train(*self.SAVING, *change, "num_round=4")
                self.assertIn("not resuming from models/0004.model: it belongs to another run", text)
                self.assertEqual(re.findall(r"^\[(\d+)\]", text, re.M), ["0", "1", "2", "3"])

    def test_the_last_model_of_a_run_is_not_resumed_from(self):
        self.train("num_round=5", *self.SAVING[1:], "model_out=NULL")
        text = self.train(*self.SAVING)
        passed_over, resumed = text.splitlines()[:2]
        self.assertEqual(passed_over, "not resuming from models/0005.model: it is the last model of a run, which does not record its data "
                         "and parameters")
        self.assertEqual(resumed, "resuming from models/0004.model at round 4")

    def test_the_same_data_under_another_name_is_the_same_run(self):
        self.train(*self.SAVING)
        os.rename(self.path("train.txt"), self.path("moved.txt"))
        self.assertIn("resuming from", self.train(*self.SAVING, "data=moved.txt?format=libsvm"))

    def test_a_shorter_run_does_not_take_a_longer_ones_rounds(self):
        self.train(*self.SAVING)
        self.assertEqual(self.train(*self.SAVING, "num_round=4"), "resuming from models/0004.model at round 4\n")
        short = self.dump("final.model")
        self.train("num_round=4")
        self.assertEqual(self.dump("final.model"), short)

    def test_resume_0_starts_over(self):
        self.train(*self.SAVING)
        self.assertEqual(self.train(*self.SAVING, "resume=0").count("["), 6)

    def test_a_damaged_newest_model_is_passed_over_for_the_one_before(self):
        self.train(*self.SAVING)
        self.write("models/0006.model", self.read("models/0006.model")[:100])
        text = self.train(*self.SAVING)
        self.assertIn("not resuming from models/0006.model: it is not a complete model", text)
        self.assertIn("\nresuming from models/0004.model at round 4\n", text)

    def test_what_a_killed_writer_left_is_ignored_and_removed(self):
        os.mkdir(self.path("models"))
        self.write("models/0004.model.12345.tmp", "half")
        self.write("final.model.12345.tmp", "half")
        self.assertEqual(self.train(*self.SAVING).count("["), 6)
        self.assertEqual(self.models(), ["0002.model", "0004.model", "0006.model"])
        self.assertNotIn("final.model.12345.tmp", self.files())

    def test_the_final_model_carries_no_trace_of_saving(self):
        self.train("model_out=plain.json")
        self.train(*self.SAVING, "model_out=saved.json")
        self.assertEqual(self.read("saved.json"), self.read("plain.json"))


@unittest.skipIf(XGBOOST is None, "Debian's xgboost program is not installed")
class LikeXgboostsOwnProgram(XgbTrainTest):
    def xgboost(self, *arguments: str) -> None:
        self.run_well(XGBOOST, "a.conf", *arguments)

    def test_it_grows_the_same_trees(self):
        for tree_method in ("exact", "approx", "hist"):
            with self.subTest(tree_method=tree_method):
                self.train("tree_method=" + tree_method, "model_out=ours.model")
                self.xgboost("tree_method=" + tree_method, "model_out=theirs.model")
                self.assertEqual(self.dump("ours.model"), self.dump("theirs.model"))

    def test_it_predicts_the_same(self):
        self.train()
        for options in ([], ["pred_margin=1"], ["iteration_begin=1", "iteration_end=3"], ["ntree_limit=2"]):
            with self.subTest(options=options):
                common = ["task=pred", "test:data=test.txt", "model_in=final.model", *options]
                self.train(*common, "name_pred=ours.txt")
                self.xgboost(*common, "name_pred=theirs.txt")
                self.assertEqual(self.read("ours.txt"), self.read("theirs.txt"))
                self.assertEqual(self.read("ours.txt").count(b"\n"), 100)

    def test_it_predicts_every_class_the_same(self):
        self.make_data("train.txt", task="multiclass", rows=300, features=8)
        multiclass = ["objective=multi:softprob", "num_class=3", "eval[test]=train.txt"]
        self.train(*multiclass)
        common = [*multiclass, "task=pred", "test:data=train.txt", "model_in=final.model"]
        self.train(*common, "name_pred=ours.txt")
        self.xgboost(*common, "name_pred=theirs.txt")
        self.assertEqual(self.read("ours.txt"), self.read("theirs.txt"))
        self.assertEqual(self.read("ours.txt").count(b"\n"), 900)

    def test_it_dumps_the_same(self):
        self.train()
        self.write("names.txt", "".join(f"{i}\tname{i}\tq\n" for i in range(9)))
        for dump_format in ("text", "json", "dot"):
            for options in ([], ["dump_stats=1"], ["fmap=names.txt"]):
                with self.subTest(dump_format=dump_format, options=options):
                    common = ["task=dump", "model_in=final.model", "dump_format=" + dump_format, *options]
                    self.train(*common, "name_dump=ours.txt")
                    self.xgboost(*common, "name_dump=theirs.txt")
                    # Without feature names, JSON dumps call feature 3 "f3" with the C API, and "3" with XGBoost's program.
                    theirs = re.sub(rb'"split": "(\d)', rb'"split": "f\1', self.read("theirs.txt"))
                    self.assertEqual(self.read("ours.txt"), theirs)

    def test_each_loads_the_others_models(self):
        self.train("model_out=ours.model")
        self.xgboost("model_out=theirs.model")
        for model in ("ours.model", "theirs.model"):
            common = ["task=pred", "test:data=test.txt", "model_in=" + model]
            self.train(*common, "name_pred=ours.txt")
            self.xgboost(*common, "name_pred=theirs.txt")
            self.assertEqual(self.read("ours.txt"), self.read("theirs.txt"))


class OtherTasks(XgbTrainTest):
    def test_predictions_go_to_standard_output_when_asked(self):
        self.train()
        text = self.run_well(XGB_TRAIN, "task=pred", "test:data=test.txt", "model_in=final.model", "name_pred=stdout")
        self.assertEqual(len(text.splitlines()), 100)

    def test_a_missing_feature_map_or_model_is_named(self):
        self.train()
        self.assertIn("nowhere.txt: no such feature map",
                      self.run_badly(1, XGB_TRAIN, "a.conf", "task=dump", "model_in=final.model", "fmap=nowhere.txt"))
        self.assertIn("nowhere.model: cannot read",
                      self.run_badly(1, XGB_TRAIN, "a.conf", "task=dump", "model_in=nowhere.model"))


if __name__ == "__main__":
    unittest.main()
