"""warren.data in jobs of dmlc-submit: training on files on disk and on a real S3 server; categories; progress; errors and deaths that reach
all workers."""
import arrow_python  # noqa: F401  # pylint: disable=unused-import,wrong-import-order
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import forking
import object_stores
from collectives_jobs import ENVIRONMENT
from warren_testing import BIN, nightly

WORKER = pathlib.Path(__file__).parent / "load_worker.py"
LIMIT_S = 120  # limit for a whole job on a busy machine
ROWS = (3000, 500, 4100)


def table(rows, seed):
    """A table whose features have few distinct values, so that every value is a cut for any number of workers. Then the number of workers
    changes only the order of gradient sums."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 30, rows), rng.integers(0, 50, rows) / 4
    city = rng.choice(["Bonn", "Rom", "Ulm", f"only-{seed}"], rows)
    y = (a + 3 * b + 10 * (city == "Ulm") + rng.normal(0, 4, rows) > 40).astype("int8")
    return pa.table({"a": a, "b": pa.array(b, mask=rng.random(rows) < 0.1), "city": pa.array(city).dictionary_encode(), "y": y,
                     "w": rng.integers(1, 4, rows), "q": np.sort(rng.integers(0, rows // 20 + 1, rows)) + 1000000 * seed})


class Job(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for seed, rows in enumerate(ROWS):
            path = cls.folder / f"bucket/train/day={seed}/part.parquet"
            path.parent.mkdir(parents=True)
            pq.write_table(table(rows, seed), path, row_group_size=600)
        (cls.folder / "bucket/train/_SUCCESS").write_text("")
        cls.local = str(cls.folder / "bucket/train")

    python = forking.python(sys.executable, "numpy", "pandas", "pyarrow.dataset", "pyarrow.parquet", "pyarrow.fs", "xgboost", "lightgbm")

    def run_python(self, words, workers=0, *, code=0, arguments=(), env=None):
        """Runs Python with these arguments in a job or, if `workers` is 0, without a job; returns the output. It must fail if, and only if,
        `code` is not 0. `arguments`: dmlc-submit's."""
        submit = [str(BIN / "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(workers), *arguments, "--"]
        done = subprocess.run([*(submit if workers else []), self.python, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=LIMIT_S, cwd=self.folder, env={**ENVIRONMENT, **(env or {})}, check=False)
        self.assertEqual(done.returncode != 0, code != 0, done.stdout)
        return done.stdout

    def job(self, workers, what, uri, *, code=0, arguments=(), env=None, **options):
        return self.run_python([str(WORKER), what, uri, json.dumps(options)], workers, code=code, arguments=arguments, env=env)

    def model(self, workers, what, uri, **options):
        said = self.job(workers, what, uri, **options)
        found = json.loads(re.search(r"model (\{.*\})", said)[1])
        self.assertEqual(found["world"], workers or 1, said)
        return found


def splits(model):
    """The feature and value of each split. Gains are left out: they are sums, whose rounding differs."""
    return [re.findall(r"\[(.*?)\]", tree) for tree in model["dump"]]


class Training(Job):
    def test_four_workers_train_the_model_of_one_from_parquet_in_s3(self):
        with object_stores.S3Server(self.folder) as server:
            env = server.environment()
            alone = self.model(0, "xgboost", self.local, label="y", exclude=["q", "w"])
            for uri in ("s3://bucket/train", "s3://bucket/train/**/*.parquet"):
                found = self.model(4, "xgboost", uri, label="y", exclude=["q", "w"], env=env)
                if uri.endswith("train"):
                    self.assertEqual(found["names"], ["a", "b", "city", "day"])
                    self.assertEqual(splits(found), splits(alone))
                    self.assertAlmostEqual(found["metric"], alone["metric"], 5)
                    self.assertEqual(found["categories"], {"city": ["Bonn", "Rom", "Ulm", "only-0", "only-1", "only-2"]})

    def test_estimators_fit_rows_in_s3_as_on_a_disk(self):
        program = """
import sys, warren
for kind, how in (warren.xgboost.XGBClassifier, {"enable_categorical": True}), (warren.lightgbm.LGBMClassifier, {"verbose": -1}):
    models = [kind(n_estimators=3, num_workers=2, **how).fit(f"{place}/**/*.parquet", "y", sample_weight="w") for place in sys.argv[1:]]
    found = [bytes(one.get_booster().save_raw()) if hasattr(one, "get_booster") else one.booster_.model_to_string() for one in models]
    print("same" if found[0] == found[1] else "DIFFERENT", kind.__name__)
"""
        with object_stores.S3Server(self.folder) as server:
            said = self.run_python(["-c", program, "s3://bucket/train", self.local], env=server.environment())
        self.assertEqual(re.findall("^same .*|^DIFFERENT.*", said, re.MULTILINE), ["same XGBClassifier", "same LGBMClassifier"], said)

    def test_a_checkpoint_in_s3_is_gone_on_from_when_all_workers_are_lost(self):
        saved = self.folder / "bucket/saved"
        saved.mkdir()
        (saved / "other").touch()  # rclone removes a folder along with its last file, and then refuses to create it again
        with object_stores.S3Server(self.folder) as server:
            of_fsspec = {"key": server.key, "secret": server.secret, "endpoint_url": f"http://{server.endpoint}"}
            found = [self.job(workers, "elastic", "s3://bucket/train", env=server.environment(), label="y", exclude=["q", "w"],
                              checkpoint="s3://bucket/saved", storage_options=options)
                     for workers, options in (("1", None), ("2:2", None), ("2:2", of_fsspec))]
        models = [set(re.findall("model ([0-9a-f]{64})", text)) for text in found]
        self.assertEqual((len(models[0]), models[1:]), (1, models[:1] * 2), found)
        for text in found[1:]:
            self.assertRegex(text, r"warren: going on from round 3 of s3://bucket/saved/[0-9a-f]{16}\.ubj")
        self.assertEqual(os.listdir(saved), ["other"])

    def test_each_kind_of_matrix_learns_the_same(self):
        alone = self.model(0, "xgboost", self.local, label="y", weight="w", exclude="q")
        pages = self.folder / "pages"
        pages.mkdir()
        for workers in (3, *nightly(0)):
            for named, kind in (({}, "DMatrix"), ({"quantile": True, "max_bin": 64}, "QuantileDMatrix"),
                                ({"external_memory": "auto"}, "DMatrix"),
                                ({"external_memory": True, "max_bin": 64, "cache_dir": str(pages)}, "ExtMemQuantileDMatrix")):
                with self.subTest(workers=workers, kind=kind, options=named):
                    found = self.model(workers, "xgboost", self.local, label="y", weight="w", exclude="q", **named)
                    self.assertEqual((found["kind"], splits(found)), (kind, splits(alone)))
            self.assertEqual(list(pages.iterdir()), [])

    def test_rankings_are_learned_from_whole_queries(self):
        params = {"objective": "rank:ndcg", "max_depth": 3, "tree_method": "hist", "max_bin": 64, "lambdarank_pair_method": "topk"}
        alone = self.model(0, "xgboost", self.local, label="y", qid="q", exclude="w", params=params, rounds=2)
        for named in ({}, {"external_memory": True, "max_bin": 64}, *nightly({"quantile": True, "max_bin": 64})):
            with self.subTest(options=named):
                found = self.model(3, "xgboost", self.local, label="y", qid="q", exclude="w", params=params, rounds=2, **named)
                self.assertAlmostEqual(found["metric"], alone["metric"], 2)

    def test_auto_takes_a_validation_set(self):
        for named in ({"quantile": True, "max_bin": 64}, *nightly({})):
            found = self.model(3, "xgboost", self.local, label="y", exclude=["q", "w"], external_memory="auto", validate=True, **named)
            self.assertEqual(found["names"], ["a", "b", "city", "day"])

    def test_codes_of_categories_are_the_same_on_all_workers_where_some_are_missing(self):
        path = self.folder / "nan"
        path.mkdir()
        for seed in range(3):
            values = np.random.default_rng(seed).integers(0, 40, 1000).astype("float64")
            values[::7] = np.nan
            pq.write_table(pa.table({"c": values, "y": values > 20}), path / f"{seed}.parquet")
        said = self.job(3, "rabit", str(path), label="y", categorical="c")
        found = {json.dumps(json.loads(one)[4]) for one in re.findall(r"share (\[.*\])", said)}
        self.assertEqual(found, {json.dumps({"c": [float(k) for k in range(40)]})})

    def test_a_worker_without_rows_is_served(self):
        path = self.folder / "few.parquet"
        pq.write_table(table(3, 7), path)
        for named in ({}, {"external_memory": True, "max_bin": 64}, *nightly({"quantile": True, "max_bin": 64})):
            with self.subTest(options=named):
                said = self.job(4, "xgboost", str(path), label="y", exclude=["q", "w"], **named)
                self.assertIn("1 of 4 workers have no rows", said)
                self.assertIn('"world": 4', said)
                params = {"objective": "binary:logistic", "tree_method": "hist", "max_bin": 64, "base_score": 0.5}
                said = self.job(4, "xgboost", str(path), label="y", weight="w", exclude="q", params=params, **named)
                self.assertIn("XGBoost computes base_score differently on workers with weights: set it", said)
                self.assertIn('"world": 4', said)

    def test_text_in_s3_is_trained_on_like_text_on_the_disk(self):
        import gzip
        folder = self.folder / "bucket/text"
        folder.mkdir()
        rng = np.random.default_rng(1)
        for name in ("a.svm", "b.svm.gz", "_hidden.svm"):
            rows = rng.integers(0, 30, (3000, 4))
            text = "".join(f"{int(row[0] + row[1] > 30)} " + " ".join(f"{at}:{value}" for at, value in enumerate(row)) + "\n" for row in rows).encode()
            (folder / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        with object_stores.S3Server(self.folder) as server:
            alone = self.model(0, "xgboost", str(folder))
            for uri in ("s3://bucket/text", "s3://bucket/text/a.svm;s3://bucket/text/b.svm.gz?format=libsvm"):
                found = self.model(3, "xgboost", uri, env=server.environment())
                self.assertEqual(splits(found), splits(alone))
            said = self.job(2, "xgboost", "s3://bucket/text/no.svm", code=1, env=server.environment())
            self.assertRegex(said, r"FileNotFoundError: rank 0: s3://bucket/text/no\.svm: there is no such file")

    def test_lightgbm_learns_from_it_too(self):
        with object_stores.S3Server(self.folder) as server:
            found = self.model(3, "lightgbm", "s3://bucket/train", label="y", exclude=["q", "w"], env=server.environment())
            self.assertEqual(found["names"], ["a", "b", "city", "day"])
            self.assertIn("num_cat=1", found["dump"])

    def test_check_data_shows_each_workers_share_once(self):
        for named in ({}, {"external_memory": True, "max_bin": 64}):
            said = self.job(3, "xgboost", self.local, label="y", exclude=["q", "w"], arguments=["--check-data"], **named)
            self.assertEqual(said.count(f"train: {sum(ROWS):,} rows, 4 features, 3 workers"), 1, said)
            self.assertEqual(len(re.findall(r"\n\[0\]   [012] +[0-9,]+ +3\d\.\d %", said)), 3, said)


class Text(Job):
    def write(self, name, rows, line):
        path = self.folder / name
        rng = np.random.default_rng(3)
        path.write_text("".join(line(row, int(values[0] + values[1] > 30), " ".join(f"{at}:{value}" for at, value in enumerate(values)))
                                for row, values in enumerate(rng.integers(0, 30, (rows, 4)))))
        return str(path)

    def test_weights_in_one_share_are_weights_in_all(self):
        # All rows except the last have the default weight.
        some = self.write("some.svm", 400, lambda row, label, cells: f"{label}{':9' if row == 399 else ''} {cells}\n")
        each = self.write("each.svm", 400, lambda row, label, cells: f"{label}:{9 if row == 399 else 1} {cells}\n")
        for what, engine in (("xgboost", "warren"), ("lightgbm", "warren"), *nightly(("xgboost", "own"))):
            with self.subTest(what=what, engine=engine):
                env = {"WARREN_XGBOOST_ENGINE": engine}
                alone = self.model(0, what, some)
                self.assertEqual(alone["dump"], self.model(0, what, each)["dump"])
                found = self.model(3, what, some, env=env)
                self.assertEqual(found["dump"], self.model(3, what, each, env=env)["dump"])
                if what == "xgboost":
                    self.assertAlmostEqual(found["metric"], alone["metric"], 5)

    def test_a_worker_without_rows_knows_how_many_labels_rows_have(self):
        few = self.folder / "few.svm"
        few.write_text("0,0 0:0.615 1:0.742 2:0.113\n1,0 0:0.337 1:0.031 2:0.449\n")
        alone = self.model(0, "xgboost", str(few))
        for named in ({}, *nightly({"quantile": True, "max_bin": 64})):
            with self.subTest(options=named):
                found = self.model(3, "xgboost", str(few), **named)
                self.assertAlmostEqual(found["metric"], alone["metric"], 5)
        params = {"objective": "binary:logistic", "tree_method": "hist", "base_score": 0.5}
        path = self.folder / "few.parquet"
        pq.write_table(pa.table({"a": [1, 2], "y": [0, 1], "z": [1, 0]}), path)
        alone = self.model(0, "xgboost", str(path), label=["y", "z"], params=params)
        found = self.model(3, "xgboost", str(path), label=["y", "z"], params=params)
        self.assertAlmostEqual(found["metric"], alone["metric"], 5)

    def test_what_is_wrong_in_one_share_is_every_workers_error(self):
        for last, words in (("x 0:1", "bad.svm:400:1: found 'x'"), ("1,0 0:1", "row .* has 2 labels"), ("1 qid:1 0:1", "bad.svm:400:3: found 'qid:1'")):
            path = self.write("bad.svm", 400, lambda row, label, cells: f"{last}\n" if row == 399 else f"{label} {cells}\n")  # pylint: disable=cell-var-from-loop
            said = self.job(3, "xgboost", path, caught=True)
            self.assertEqual(len(re.findall(f"caught rank 2: .*{words}", said)), 3, said)
        path = self.write("bad.svm", 400, lambda row, label, cells: f"{label}{',1' if row > 150 else ''} {cells}\n")
        said = self.job(2, "xgboost", path, caught=True)
        self.assertEqual(len(re.findall("caught .*bad.svm: .* labels", said)), 2, said)
        path = self.write("bad.svm", 400, lambda row, label, cells: f"{label} qid:{row // 10 % 20} {cells}\n")
        said = self.job(2, "xgboost", path, caught=True)
        self.assertEqual(len(re.findall("caught .*bad.svm: the rows of query 0 are not together: sort the file by qid", said)), 2, said)


class Shares(Job):
    def test_each_row_is_one_ranks_over_warrens_own_engine(self):
        from warren import data
        whole = data.load(self.local, label="y", exclude=["q", "w"])
        said = self.job(3, "rabit", self.local, label="y", exclude=["q", "w"])
        found = sorted(json.loads(one) for one in re.findall(r"share (\[.*\])", said))
        self.assertEqual([one[:2] for one in found], [[0, 3], [1, 3], [2, 3]])
        self.assertEqual(sum(one[2] for one in found), len(whole))
        self.assertLess(abs(sum(one[3] for one in found) - int(np.nan_to_num(whole.features).astype("float64").sum() * 1000)), 3)
        self.assertEqual({json.dumps(one[4]) for one in found}, {json.dumps(whole.categories)})


class Progress(Job):
    @staticmethod
    def on_a_terminal(command, env):
        """Runs the command on a terminal; returns its output."""
        child, terminal = pty.fork()
        if child == 0:
            os.execve(command[0], command, env)
        said = b""
        try:
            while True:
                piece = os.read(terminal, 1 << 16)
                if not piece:
                    break
                said += piece
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        os.waitpid(child, 0)
        return said.decode(errors="replace")

    def test_is_shown_on_a_terminal_and_reported_to_dmlc_submit(self):
        uri = self.folder / "many.parquet"
        pq.write_table(table(200000, 1), uri, row_group_size=2000)
        worker = [str(WORKER), "rabit", str(uri), json.dumps({"label": "y", "exclude": ["q", "w"], "batch_pause": 0.02})]
        self.assertRegex(self.on_a_terminal([sys.executable, *worker], ENVIRONMENT),
                         r"\r\x1b\[K\S*many\.parquet: [0-9,]+ of 200,000 rows, \d+ MB, \d+ MB/s(, \d+ s left)?")
        said = self.run_python(worker, 2, arguments=["--log-level", "DEBUG"], env={"WARREN_REPORT_SECONDS": "0.1"})
        reports = [json.loads(one) for one in re.findall(r"report: (\{.*\})", said)]
        read = [one for one in reports if "many.parquet" in one.get("reading", {}).get("what", "")]
        self.assertEqual({one["task"] for one in read}, {"0", "1"})
        for one in read:
            self.assertLessEqual(one["reading"]["rows"], 100_000)
            self.assertGreater(one["reading"]["total_bytes"], 0)
        self.assertEqual({one["task"] for one in reports if one.get("reading", {}).get("what") == ""}, {"0", "1"})
        self.assertNotIn("MB/s", said)


class Wrong(Job):
    def test_what_is_wrong_with_one_file_is_every_workers_error_before_anybody_trains(self):
        path = self.folder / "wrong"
        path.mkdir(exist_ok=True)
        for seed in range(4):
            rows = table(500, seed)
            if seed == 2:
                rows = rows.set_column(0, "a", pa.array(["x"] * 500))
            pq.write_table(rows, path / f"{seed}.parquet")
        said = self.job(3, "xgboost", str(path), label="y", code=1)
        # When the first worker fails, the others are stopped, perhaps before they have printed the same error.
        self.assertRegex(said, r"\] ValueError: rank 0: .*2\.parquet: column 'a' is string, expected numbers")
        self.assertNotIn("The above exception", said)
        pq.write_table(table(500, 2).set_column(3, "y", pa.array([None] * 500, pa.int8())), path / "2.parquet")
        said = self.job(3, "xgboost", str(path), label="y", code=1)
        self.assertRegex(said, r"\] ValueError: rank \d: .*2\.parquet, row group 0, row 0: the label in column 'y' is nothing")
        self.assertNotIn("model {", said)

    def test_workers_that_ask_for_other_things_are_told_so(self):
        for named, words in (({"shuffle": [None, 1]}, r"rank 0 has shuffle=None, and rank 1 shuffle=1: all workers must give the same"),
                             ({"features": [["a", "b"], ["b", "a"]]}, r"rank 0 has features=\('a', 'b'\), and rank 1 features=\('b', 'a'\)"),
                             ({"quantile": [False, True]}, "rank 0 has quantile=False, and rank 1 quantile=True"),
                             ({"categories": [None, {"city": ["Rom"]}]}, "rank 0 has categories=None, and rank 1 categories=")):
            with self.subTest(options=named):
                said = self.job(2, "xgboost", self.local, label="y", exclude=["q", "w"], of_rank=named, code=1)
                self.assertRegex(said, words)

    def test_a_bad_value_is_every_workers_error_with_pages_too(self):
        path = self.folder / "bad.parquet"
        rows = table(4000, 5)
        pq.write_table(rows.set_column(3, "y", pa.array([*rows["y"].to_pylist()[:3900], *[None] * 100], pa.int8())), path, row_group_size=500)
        for named in ({}, {"external_memory": True, "max_bin": 64}):
            said = self.job(3, "xgboost", str(path), label="y", exclude=["q", "w"], caught=True, **named)
            self.assertEqual(len(re.findall(r"caught rank 2: .*bad\.parquet, row group 7, row 400: the label in column 'y' is nothing", said)), 3, said)

    def test_queries_of_one_file_that_come_again_with_another_worker(self):
        path = self.folder / "unsorted.parquet"
        rows = table(4000, 5)
        pq.write_table(rows.set_column(5, "q", pa.array(np.repeat(np.arange(200) % 100, 20))), path, row_group_size=500)
        for named in ({}, {"external_memory": True, "max_bin": 64}):
            said = self.job(2, "xgboost", str(path), label="y", qid="q", exclude="w", code=1, **named)
            self.assertRegex(said, r"ValueError: .*unsorted\.parquet: the rows of query 0 \(column 'q'\) are not together: sort the file by it")

    def test_a_file_that_is_gone_and_a_bucket_that_was_never_there(self):
        with object_stores.S3Server(self.folder) as server:
            for uri in ("s3://bucket/nothing/*.parquet", "s3://no-such-bucket/x.parquet"):
                said = self.job(2, "xgboost", uri, label="y", code=1, env=server.environment())
                self.assertRegex(said, r"\] FileNotFoundError: rank 0: " + re.escape(uri[:15]))

    def test_a_worker_that_is_killed_in_the_middle_of_reading_ends_the_job(self):
        with object_stores.S3Server(self.folder) as server:
            said = self.job(4, "xgboost", "s3://bucket/train", label="y", exclude=["q", "w"], die=[2, 2], code=1, env=server.environment())
            self.assertIn("worker 2", said)
            self.assertIn("signal 9", said)
            self.assertNotIn("model {", said)


class Programs(Job):
    """Small programs, in a job of some workers or, with 0 workers, alone."""

    def run_it(self, code, workers=0):
        return self.run_python(["-c", code], workers)

    def test_xgboost_does_not_train_alone_in_a_job_that_another_library_has_joined(self):
        (self.folder / "one.csv").write_text("y,a\n1,2\n", encoding="ascii")
        said = self.run_it("""
import numpy as np, xgboost, warren.xgboost
from warren import collectives
with collectives.context():
    x, y = np.ones((4, 2)), np.ones(4)
    warren.xgboost.load_dmatrix("one.csv", label="y")  # one worker has no rows
    for train in (lambda: warren.xgboost.train({}, xgboost.DMatrix(x, y), 1),
                  lambda: warren.xgboost.train({}, warren.xgboost.Data(x, label=y), 1),
                  lambda: warren.xgboost.train_with_checkpoints({}, xgboost.DMatrix(x, y), 1, "c.ubj")):
        try:
            train()
            print("trained alone")
        except RuntimeError as error:
            print("refused:", error)
""", 2)
        self.assertEqual(len(re.findall("refused: this process is rank [01] of 2 of a job that it has not joined", said)), 6, said)
        self.assertNotIn("trained alone", said)
        self.assertEqual(len(re.findall("UserWarning: this process is rank [01] of 2 of a job that it has not joined", said)), 2, said)
        self.assertNotIn("have no rows", said)

    def test_evaluation_sets_have_the_categories_of_the_training_rows_whatever_the_tree_method(self):
        # Without them, "b" would be the first category of the evaluation set, and have the code of "a".
        for name, cities in (("train", ["a", "b", "c"] * 20), ("valid", ["b", "c"] * 30)):
            pq.write_table(pa.table({"city": pa.array(cities).dictionary_encode(), "y": [float(ord(city)) for city in cities]}),
                           self.folder / f"{name}.parquet")
        said = self.run_it("""
import pandas as pd, warren.xgboost
from warren.xgboost import Data
train, valid = Data("train.parquet", label="y"), Data("valid.parquet", label="y")
other = Data(pd.DataFrame({"city": pd.Categorical(["b", "c"])}), label=[98, 99])
for method in ("hist", "approx"):
    found, params = {}, {"tree_method": method, "learning_rate": 1, "lambda": 0, "min_child_weight": 0}
    warren.xgboost.train(params, train, 4, evals=[(valid, "v")], evals_result=found, verbose_eval=False)
    print(method, found["v"]["rmse"][-1] < .01)
    try:
        warren.xgboost.train(params, train, 4, evals=[(other, "v")], verbose_eval=False)
    except ValueError as error:
        print(method, error)
""")
        for method in ("hist", "approx"):
            self.assertIn(f"{method} True\n", said)
            self.assertIn(f"{method} column 'city' has the categories ['b', 'c'], and the training rows have ['a', 'b', 'c']", said)

    def test_lightgbms_validation_sets_have_the_columns_of_the_training_rows_in_their_order(self):
        a, b = np.arange(200.0), np.random.default_rng(0).random(200)
        for name, columns in (("train", {"a": a, "b": b, "y": a}), ("valid", {"b": b, "y": a, "more": b, "a": a}),
                              ("other", {"c": b, "a": a, "y": a})):
            pq.write_table(pa.table(columns), self.folder / f"{name}.parquet")
        said = self.run_it("""
import lightgbm, warren.lightgbm
from warren.lightgbm import Data
def error(valid, **options):
    found, train, valid = {}, Data("train.parquet", label="y", feature_name=["A", "B"]), Data(valid, label="y", **options)
    warren.lightgbm.train({"verbose": -1, "learning_rate": 1}, train, 9, [valid], callbacks=[lightgbm.record_evaluation(found)])
    return found["valid_0"]["l2"][-1]
print("same", error("valid.parquet") == error("train.parquet"))
for given in ({"valid": "other.parquet"}, {"valid": "valid.parquet", "features": ["b", "a"]}):
    try:
        print("not refused", error(**given))
    except ValueError as words:
        print("refused", words)
""")
        self.assertIn("same True\n", said)
        self.assertRegex(said, "refused .*other.parquet.*'b'")
        self.assertIn("refused a validation set has other columns than the training rows, or has them in another order", said)

    def test_estimators_in_elastic_jobs_take_evaluation_sets_without_the_weights_of_the_training_rows(self):
        x = np.arange(200.0)
        for name, columns in (("train", {"a": x, "w": x % 3 + 1}), ("plain", {"a": x}), ("weighed", {"w": x, "a": x})):
            pq.write_table(pa.table({**columns, "y": x}), self.folder / f"{name}.parquet")
        said = self.run_it("""
import warren.xgboost
model = warren.xgboost.XGBRegressor(n_estimators=2, num_workers=(1, 1))
model.fit("train.parquet", "y", sample_weight="w", eval_set=[("plain.parquet", "y"), ("weighed.parquet", "y")], verbose=False)
found = model.evals_result()
print("same", found["validation_0"] == found["validation_1"], model.get_booster().feature_names)
""")
        self.assertIn("same True ['a']\n", said)

    def test_lightgbms_validation_sets_in_elastic_jobs_are_refused_if_their_columns_are_others(self):
        a = np.arange(200.0)
        for name, columns in (("train", {"a": a, "b": a, "y": a}), ("valid", {"b": a, "a": a, "y": a})):
            pq.write_table(pa.table(columns), self.folder / f"{name}.parquet")
        said = self.run_it("""
import warren.lightgbm
from warren.lightgbm import Data
with warren.lightgbm.communicator():
    for given in ({}, {"features": ["a", "b"]}):
        try:
            train, valid = Data("train.parquet", label="y"), Data("valid.parquet", label="y", **given)
            warren.lightgbm.train({"verbose": -1}, train, 1, [valid], elastic=True)
            print("trained", given)
        except ValueError as error:
            print("refused", given, error)
""", "1:1")
        self.assertIn("refused {} a validation set has other columns than the training rows, or has them in another order", said)
        self.assertIn("trained {'features': ['a', 'b']}\n", said)

    def test_lightgbms_estimators_keep_the_number_of_threads_under_each_of_its_names(self):
        said = self.run_it("""
import numpy as np, warren.lightgbm
x = np.arange(200.0).reshape(100, 2)
for name in ("num_threads", "n_jobs"):
    model = warren.lightgbm.LGBMRegressor(n_estimators=1, num_workers=1, verbose=-1, **{name: 3}).fit(x, x[:, 0])
    print(name, "[num_threads: 3]" in model.booster_.model_to_string())
""")
        self.assertRegex(said, "num_threads True\n(.*\n)*n_jobs True\n")

    def test_sparse_rows_of_many_columns_are_no_more_batches_than_their_entries_need(self):
        import scipy.sparse
        from warren._xgboost.elastic import rows
        from warren.data._table import Table
        table = Table(scipy.sparse.random(100, 500, .01, "csr", np.float32, random_state=1), None, None, np.ones(100), None, None, None, {})
        with unittest.mock.patch.object(rows, "_BATCH_VALUES", 500):  # the number of entries
            made = rows._matrix_of(table, {"max_bin": 4, "nthread": 1}, self.fail)
        self.assertEqual((made.num_row(), made.num_col()), (100, 500))

    def test_frames_whose_columns_have_numbers_for_names_get_the_categories_of_the_training_rows(self):
        import pandas as pd
        from warren._xgboost.on_workers import _renumbered
        train, valid = (pd.DataFrame({0: [1.0, 2.0], 1: pd.Categorical(["b", "c"], categories=list(of))}) for of in ("abc", "cb"))
        found = _renumbered(valid, train, "the training rows")
        self.assertEqual((list(found[1].cat.categories), found[1].cat.codes.tolist()), (["a", "b", "c"], [1, 2]))
        self.assertEqual(list(valid[1].cat.categories), ["c", "b"])

    def test_checkpoints_are_in_the_home_folder_where_the_tilde_is_and_come_every_round_at_least(self):
        said = self.run_it("""
import os, numpy as np, xgboost, warren.xgboost
os.environ["HOME"] = os.getcwd()
os.makedirs("kept")
class Look(xgboost.callback.TrainingCallback):
    def before_iteration(self, model, epoch, evals_log):
        print(epoch, [name for name in os.listdir("kept") if not name.startswith(".")])
matrix = xgboost.DMatrix(np.ones((4, 2)), np.ones(4))
warren.xgboost.train_with_checkpoints({}, matrix, 2, "~/kept/c.ubj", callbacks=[Look()])
with open("x.svm", "w") as file:
    file.write("1 0:1\\n0 0:2\\n")
warren.xgboost.train({}, warren.xgboost.Data("x.svm"), 2, elastic=True, checkpoint="~/kept/of elastic", verbose_eval=False)
print(os.listdir("kept"), os.path.exists("~"))
for every in (0, -1, 1.5, True):
    try:
        warren.xgboost.train_with_checkpoints({}, matrix, 2, "kept/c.ubj", every=every)
    except (TypeError, ValueError) as error:
        print("refused", error)
""")
        self.assertIn("0 []\n1 ['c.ubj']\n['of elastic'] False\n", said)
        for every in (0, -1, 1.5, True):
            self.assertIn(f"refused every={every}: expected a ", said)

    def test_metrics_of_workers_whose_rows_weigh_nothing_do_not_count(self):
        said = self.run_it("""
import types, numpy as np
from warren import rabit
from warren._lightgbm.metrics import over_workers
with rabit.context():
    rank = rabit.get_rank()
    rows = types.SimpleNamespace(get_weight=lambda: np.array([0.0, 10.0][rank:rank + 1]), num_data=lambda: 1, get_group=lambda: None)
    print("mean", over_workers(types.SimpleNamespace(train_set=rows), "valid", 0, [("valid", "l2", [float("nan"), .25][rank], False)]))
""", 2)
        self.assertEqual(said.count("mean [('valid', 'l2', 0.25, False)]"), 2, said)


if __name__ == "__main__":
    unittest.main()
