"""A worker for xgboost_training_test.py: runs the function that its first argument names. Uses the XGBoost that its interpreter finds."""
import array
import collections
import decimal
import json
import os
import pathlib
import resource
import sys
import threading
import time
import types
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import xgboost as xgb  # noqa: E402

import warren.xgboost as wx  # noqa: E402
from warren._xgboost import same_on_ranks  # noqa: E402

PARAMS = {"objective": "reg:squarederror", "tree_method": "hist", "nthread": 1, "max_depth": 3}
ROUNDS = 12


def share(rows: int = 600, seed: int = 0, columns: int = 4, **options):  # noqa: ANN003, ANN201
    """This worker's share of rows, which are the same for any number of workers."""
    random = np.random.default_rng(seed)
    features = random.random((rows, columns), np.float32)
    label = features[:, 0] * 2 + features[:, 1]
    mine = np.array_split(np.arange(rows), wx.get_world_size())[wx.get_rank()]
    return xgb.DMatrix(features[mine], label[mine], **{name: value[mine] for name, value in options.items()})


def squares(predictions, matrix):  # noqa: ANN001, ANN201
    """An objective function."""
    return predictions - matrix.get_label(), np.ones(len(predictions))


def scaled(factor: float):  # noqa: ANN201
    """An objective function with a captured value."""
    def objective(predictions, matrix):  # noqa: ANN001, ANN202
        return factor * (predictions - matrix.get_label()), np.full(len(predictions), factor)
    return objective


class Halt(xgb.callback.TrainingCallback):
    """After `rounds` rounds, before the next one, ends the process of rank 0 or, if `until` is given, makes it wait for that file."""

    def __init__(self, rounds: int, until: str = "") -> None:
        super().__init__()
        self.rounds, self.until = rounds, pathlib.Path(until) if until else None

    def before_iteration(self, model, epoch, evals_log):  # noqa: ANN001, ANN201
        """Ends or delays rank 0 after `rounds` rounds. Returns False, so that training continues."""
        if wx.get_rank() != 0 or model.num_boosted_rounds() != self.rounds:
            return False
        if self.until is None:
            os._exit(9)
        print("waits", flush=True)
        while not self.until.exists():
            time.sleep(0.02)
        return False


def checkpointed(path: str, how: str = "{}") -> None:
    """Trains with a checkpoint after each round. `how` is JSON with the settings that differ from the defaults."""
    given = json.loads(how)
    with wx.communicator():
        matrix = share(given.get("rows", 600), given.get("seed", 0),
                       **{name: np.arange(600) % 7 + 1.0 for name in given.get("fields", [])})
        if given.get("quantile"):
            matrix = xgb.QuantileDMatrix(matrix.get_data(), matrix.get_label())
        options = {}
        if "obj" in given:
            options["obj"] = scaled(given["obj"]) if given["obj"] else squares
        if "evals" in given:
            options.update(evals=[(share(60, given["evals"]), "valid")], early_stopping_rounds=5)
        if "order" in given:
            sets = [(share(60, 5), "first"), (share(60, 6), "second")]
            options.update(evals=sets[::given["order"]], early_stopping_rounds=5)
        if "file_limit" in given:
            resource.setrlimit(resource.RLIMIT_FSIZE, (given["file_limit"], given["file_limit"]))
        halt = Halt(given["halt"], given.get("until", "")) if "halt" in given else None
        model = wx.train_with_checkpoints({**PARAMS, **given.get("params", {})}, matrix, given.get("rounds", ROUNDS), path,
                                          callbacks=[halt] if halt else [], verbose_eval=False, **options)
        if wx.get_rank() == 0:
            print("trained", model.num_boosted_rounds(), flush=True)
            if given.get("model"):
                model.save_model(given["model"])


def in_threads() -> None:
    """Trains in two new threads, one after the other, then in the thread that joined the job."""
    warnings.simplefilter("default")
    warnings.filterwarnings("ignore", category=FutureWarning)
    with wx.communicator():
        x = np.random.default_rng(wx.get_rank()).random((200, 4), np.float32)
        for _ in range(2):
            thread = threading.Thread(target=lambda: xgb.train(PARAMS, xgb.DMatrix(x, x[:, 0]), 2))
            thread.start()
            thread.join()
        xgb.train(PARAMS, xgb.DMatrix(x, x[:, 0]), 2)
        print("trained", flush=True)


def same_rows(how: str) -> None:
    """Trains, in one of many ways, on rows that are, or are not, the same on all workers."""
    warnings.simplefilter("default")
    warnings.filterwarnings("ignore", category=FutureWarning)
    with wx.communicator():
        random = np.random.default_rng(0)
        x = random.random((200, 4), np.float32)
        y = x[:, 0]
        if how == "few":
            x, y = x[:9], y[:9]
        if how == "other features":
            x = x + np.float32(wx.get_rank())
        if how == "other labels":
            y = y + wx.get_rank()
        if how == "other numbers of rows":
            x, y = x[wx.get_rank():], y[wx.get_rank():]
        if how == "ignored":
            import warren.data  # pylint: disable=import-outside-toplevel

            warnings.simplefilter("ignore", warren.data.SameRowsWarning)
        if how == "scattered":
            from warren import data  # pylint: disable=import-outside-toplevel

            x, y = data.scatter((x, y) if wx.get_rank() == 0 else None)
        if how == "loaded":
            matrix = wx.load_dmatrix("rows.svm")
        elif how == "quantile":
            matrix = xgb.QuantileDMatrix(x, y)
        elif how.startswith("bins"):
            # A binned matrix, too large for its rows to be examined. The labels are the same on both workers in any case.
            own = np.random.default_rng(wx.get_rank() if how == "bins of others" else 5)
            x = own.random((5000, 20), np.float32)
            matrix = xgb.QuantileDMatrix(x, np.arange(5000) % 2)
        else:
            matrix = xgb.DMatrix(x, y)
        if how == "estimator":
            xgb.XGBRegressor(n_estimators=2).fit(x, y)
        elif how == "by hand":
            model = xgb.Booster(PARAMS, [matrix])
            for iteration in range(3):
                model.update(matrix, iteration)
        elif how == "objective":
            xgb.train(PARAMS, matrix, 2, obj=squares)
        else:
            for _ in range(3):
                xgb.train(PARAMS, matrix, 2)
        print("trained", flush=True)


def different() -> None:
    """Trains in ways in which the workers differ, one after the other. Prints the error or warning of each way, or "none"."""
    class Frame:
        """Stands in for a pandas DataFrame, which the workers do not have."""
        iloc = None

        def __init__(self, categories):  # noqa: ANN001
            self.dtypes = {"city": types.SimpleNamespace(categories=categories), "size": np.dtype(float)}

    random = np.random.default_rng(int(os.environ["DMLC_TASK_ID"]))
    x = random.random((300, 4), np.float32) + np.float32(random.random())
    y = (x[:, 0] > x[:, 1]).astype(np.float32)
    logistic = {**PARAMS, "objective": "binary:logistic", "base_score": 0.5}
    early, used = xgb.QuantileDMatrix(x, y), xgb.DMatrix(x, y)
    begun = xgb.train(PARAMS, used, 2)
    with wx.communicator():
        first = wx.get_rank() == 0

        def matrix(names="abcd", kinds="qqqq", rows=300, values=None):  # noqa: ANN001, ANN202
            made = xgb.DMatrix(np.floor(x[:rows] * 3), y[:rows], feature_names=list(names) if names else None,
                               feature_types=list(kinds) if kinds else None, enable_categorical=True)
            if values is not None:
                same_on_ranks.keeping_categories(lambda *_: None)(made, Frame(values))
            return made

        def shared():  # noqa: ANN202
            model = xgb.train(PARAMS, matrix(), 3)
            model.set_attr(of=str(wx.get_rank()))
            return model

        ways = {
            "matrix of bins made early": lambda: xgb.train(PARAMS, early, 2),
            "matrix trained on before": lambda: xgb.train(PARAMS, used, 2),
            "eta": lambda: xgb.train({**PARAMS, "eta": 0.3 if first else 0.8}, matrix(), 2),
            "objective": lambda: xgb.train({**PARAMS, "base_score": 0.5, **({} if first else {"objective": "reg:logistic"})}, matrix(), 2),
            "base_score": lambda: xgb.train({**PARAMS, "base_score": float(y.mean())}, matrix(), 2),
            "order": lambda: xgb.train(PARAMS, matrix("abcd" if first else "bacd"), 2),
            "categories": lambda: xgb.train(PARAMS, matrix(values=["rom", "ulm"] if first else ["ulm"]), 2),
            "continued": lambda: xgb.train(PARAMS, matrix(None, None), 2, xgb_model=begun),
            "names": lambda: xgb.train(PARAMS, matrix("abcd" if first else "abc?"), 2),
            "weight of a class": lambda: xgb.train({**logistic, "scale_pos_weight": 1 if first else 2}, matrix(), 2),
            "seeds of dart": lambda: xgb.train({**PARAMS, "booster": "dart", "rate_drop": 0.5, "seed": wx.get_rank()}, matrix(), 2),
            "seeds of columns": lambda: xgb.train({**PARAMS, "colsample_bynode": 0.5, "seed": wx.get_rank()}, matrix(), 2),
            "threads": lambda: xgb.train({**PARAMS, "nthread": wx.get_rank() + 1, "verbosity": 0 if first else 1}, matrix(), 2),
            "kinds of numbers": lambda: xgb.train(PARAMS, matrix(kinds="qqqq" if first else ("int", "i", "q", "float")), 2),
            "names of some": lambda: xgb.train(PARAMS, matrix("abcd" if first else None, "qqqq" if first else None), 2),
            "no rows": lambda: xgb.train({**PARAMS, "tree_method": "approx"}, matrix(None, None, 0) if not first else matrix(), 2),
            "fewer categories": lambda: xgb.train(PARAMS, matrix(values=["rom", "ulm"] if first else ["rom"]), 2),
            "attributes": lambda: xgb.train(PARAMS, matrix(), 2, xgb_model=shared()),
            "forest": lambda: xgb.train({**PARAMS, "num_parallel_tree": 5, "colsample_bynode": 0.5}, matrix(), 2),
            "linear": lambda: xgb.train({"booster": "gblinear"}, matrix(), 2),
        }
        for name, way in ways.items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    way()
                    said = next((str(one.message) for one in told if "than rank 0: " in str(one.message)), "none")
                except ValueError as error:
                    said = f"error {error}"
            print(f"{name}: {said}", flush=True)


def twice(how: str) -> None:
    """Joins and leaves the job twice."""
    for _ in range(2):
        if how == "communicator":
            with wx.communicator():
                print("sum of ranks", wx.get_world_size(), flush=True)
                before = wx.get_rank(), wx.get_world_size()
            print("left with the rank it had", before == (wx.get_rank(), wx.get_world_size()), flush=True)
        else:
            wx.init()
            wx.finalize()


def forked() -> None:
    """Forks processes that end, fail, predict and train, while this one stays in the job."""
    with wx.communicator():
        matrix = share()
        model = xgb.train(PARAMS, matrix, 2)

        def code_of(work) -> int:  # noqa: ANN001
            pid = os.fork()
            if pid == 0:
                work()
                sys.exit(3)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        def fail() -> None:
            raise ValueError(f"child of {wx.get_rank()}")

        def work() -> None:
            rows = np.zeros((5, 4), np.float32)
            assert len(model.inplace_predict(rows)) == 5
            made = []
            thread = threading.Thread(target=lambda: made.append(xgb.DMatrix(rows)))
            thread.start()
            thread.join()
            assert made[0].num_row() == 5
            for call in (lambda: xgb.DMatrix(rows), lambda: xgb.train(PARAMS, matrix, 1), lambda: wx.broadcast(1)):
                try:
                    call()
                except RuntimeError as error:
                    assert "forked from a worker" in str(error), error  # noqa: PT017
                else:
                    raise AssertionError("a forked process communicated")

        assert [code_of(lambda: sys.exit(0)), code_of(fail), code_of(work)] == [0, 1, 3]
        xgb.train(PARAMS, matrix, 2)
    print("left", flush=True)


def never_left(how: str) -> None:
    """Joins the job and ends without leaving it, or leaves it in `finally` after an exception."""
    wx.init()
    matrix = share()
    xgb.train(PARAMS, matrix, 2)
    try:
        if how != "end" and wx.get_rank() == 1:
            raise ValueError("no such luck")
        if how != "end":
            xgb.train(PARAMS, matrix, 10_000)
    finally:
        if how == "finally":
            wx.finalize()
    print("trained", flush=True)


def joins_again() -> None:
    """Replaces the job's communicator by XGBoost's own means, which a thread outside of the job may do."""
    with wx.communicator():
        thread = threading.Thread(target=xgb.collective.init)
        thread.start()
        thread.join()
        assert wx.get_world_size() == 2
        xgb.collective.init()


def short_of_files(spare: str) -> None:
    """Joins the job. Worker 1 can open only `spare` more files."""
    if os.environ["DMLC_TASK_ID"] == "1":
        highest = max(map(int, os.listdir("/proc/self/fd")))
        # Fills the gaps between the open descriptors.
        held = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest - len(os.listdir("/proc/self/fd")) + 2)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1 + int(spare),) * 2)
    with wx.communicator():
        print("joined", wx.get_world_size(), flush=True)


def alone_in_a_call(how: str) -> None:
    """One rank makes a call that the other rank does not make. The other rank leaves the job instead: immediately or, for a broadcast,
    after the call has ended on its root."""
    with wx.communicator():
        matrix = share()
        model = xgb.train(PARAMS, matrix, 2)
        if wx.get_rank() == int(how[-1]):
            if how.startswith("evaluate"):
                print(model.eval(matrix))
            elif how.startswith("train"):
                xgb.train(PARAMS, matrix, 2)
            else:
                xgb.collective.broadcast("to nobody", wx.get_rank())
                pathlib.Path("broadcast").touch()
        elif how.startswith("broadcast"):
            while not pathlib.Path("broadcast").exists():
                time.sleep(0.01)


def slow(how: str) -> None:
    """Trains for ROUNDS rounds, each of which takes a third of a second."""
    class Wait(xgb.callback.TrainingCallback):
        """Waits after each round."""

        def after_iteration(self, model, epoch, evals_log):  # noqa: ANN001, ANN201
            """Returns False, so that training continues."""
            time.sleep(0.33)
            return False

    with wx.communicator():
        matrix = share()
        if how == "checkpoints":
            wx.train_with_checkpoints(PARAMS, matrix, ROUNDS, "c.ubj", callbacks=[Wait()])
        elif how == "evaluated":
            xgb.train(PARAMS, matrix, ROUNDS, callbacks=[Wait()], evals=[(matrix, "train")])
        elif how == "estimator":
            xgb.XGBRegressor(**PARAMS, n_estimators=ROUNDS, callbacks=[Wait()]).fit(matrix.get_data(), matrix.get_label())
        else:
            xgb.train(PARAMS, matrix, num_boost_round=ROUNDS, callbacks=[Wait()])


def digests() -> None:
    """Checks which changes affect the digests of rows and functions, and which do not."""
    import functools  # pylint: disable=import-outside-toplevel

    from warren._xgboost import digest as _xgboost_digest  # pylint: disable=import-outside-toplevel
    from warren.data._peers import Alone  # pylint: disable=import-outside-toplevel

    def of(*given, kind=xgb.DMatrix, **named):  # noqa: ANN002, ANN003, ANN202
        return _xgboost_digest.of_matrices([kind(*given, **named)], Alone())[0]["digest"]

    random = np.random.default_rng(1)
    x = random.random((1000, 5), np.float32)
    x[3, 2] = np.nan
    y = x[:, 0]
    weight, sizes = np.arange(1000) % 3 + 1.0, np.full(100, 10)
    base = of(x, y)
    order = random.permutation(1000)
    _xgboost_digest._ENTRIES_AT_A_TIME = 700  # pylint: disable=protected-access
    assert of(x, y) == base and of(x[order], y[order]) == base
    changed = [x.copy() for _ in range(4)]
    changed[0][17, 4] += np.float32(1e-6)
    changed[1][3, 2] = 0
    changed[2][17, 4] = np.nan
    changed[3][[5, 6], 1] = changed[3][[6, 5], 1]  # two rows exchange a value
    other = [of(one, y) for one in changed] + [of(x, np.roll(y, 1)), of(x[:-1], y[:-1]), of(x, y, weight=weight),
                                               of(x, y, base_margin=weight), of(x, y, feature_names=list("abcde")),
                                               of(np.hstack([x, x[:, :1]]), y), of(x[:, ::-1], y), of(x, y, group=sizes),
                                               of(x, y, group=[20, *sizes[2:]]), of(x, y, group=sizes, weight=np.arange(100.)),
                                               of(x, y, group=sizes, weight=np.arange(100.)[::-1]),
                                               of(x, y, group=np.roll([20, *sizes[2:]], 1))]
    assert len({base, *other}) == len(other) + 1
    queries = np.concatenate([np.arange(10) + 10 * one for one in random.permutation(100)])
    assert of(x[queries], y[queries], group=sizes) == of(x, y, group=sizes)
    bins = of(x, y, kind=xgb.QuantileDMatrix)
    assert bins == of(x, y, kind=xgb.QuantileDMatrix) != of(changed[2], y, kind=xgb.QuantileDMatrix)
    if hasattr(xgb.QuantileDMatrix, "get_quantile_cut"):
        _xgboost_digest._MOST_ENTRIES_OF_BINS = 0  # pylint: disable=protected-access
        cuts = of(x, y, kind=xgb.QuantileDMatrix)
        assert bins != cuts == of(x, y, kind=xgb.QuantileDMatrix) != of(x * 2, y, kind=xgb.QuantileDMatrix)
        assert cuts != of(x, np.roll(y, 1), kind=xgb.QuantileDMatrix)
        assert cuts != of(x, y, kind=xgb.QuantileDMatrix, weight=weight)

    class Batches(xgb.DataIter):
        """Two batches, for pages on disk."""

        def __init__(self, features, label) -> None:  # noqa: ANN001
            self.parts, self.at = [(features[:500], label[:500]), (features[500:], label[500:])], 0
            super().__init__(cache_prefix=os.path.join(os.getcwd(), "pages"))

        def next(self, input_data) -> int:  # noqa: ANN001
            """Passes the next batch to XGBoost."""
            if self.at == len(self.parts):
                return 0
            input_data(data=self.parts[self.at][0], label=self.parts[self.at][1])
            self.at += 1
            return 1

        def reset(self) -> None:
            """Starts again from the first batch."""
            self.at = 0

    for kind in [xgb.DMatrix] + ([xgb.ExtMemQuantileDMatrix] if hasattr(xgb, "ExtMemQuantileDMatrix") else []):
        pages = of(Batches(x, y), kind=kind)
        assert pages == of(Batches(x, y), kind=kind) != of(Batches(x, np.roll(y, 1)), kind=kind)

    class Objective:
        """An objective with a parameter."""

        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, predictions, matrix):  # noqa: ANN001, ANN204
            return predictions * self.factor, predictions

        def method(self, predictions, matrix):  # noqa: ANN001, ANN201
            """An objective that is a method."""
            return predictions * self.factor, predictions

    class WithSlots(Objective):
        """An objective whose parameter is in a slot, not in __dict__."""

        __slots__ = ("power",)

        def __init__(self, power: float) -> None:
            super().__init__(1)
            self.power = power

    def around(value):  # noqa: ANN001, ANN202
        return lambda p, m: (p * value, p)

    def with_default(predictions, matrix, factor=2):  # noqa: ANN001, ANN202
        return predictions * factor, predictions

    def itself(predictions, matrix):  # noqa: ANN001, ANN202
        return itself if matrix else predictions

    functions = [squares, scaled(1), scaled(2), Objective(1), Objective(2), Objective(1).method, Objective(2).method, with_default,
                 functools.partial(with_default, factor=2), functools.partial(with_default, factor=3), lambda p, m: (p, p),
                 lambda p, m: (p, p * 2), lambda p, m: (p, p in {"a", "b"}), itself, np.sum]
    found = [_xgboost_digest.of_function(one) for one in functions]
    assert len(set(found)) == len(found), found
    assert [_xgboost_digest.of_function(one) for one in (scaled(2), Objective(1))] == [found[2], found[3]]
    values = [types.SimpleNamespace(k=1.0), types.SimpleNamespace(k=5.0), types.SimpleNamespace(k=[types.SimpleNamespace(j=1)]),
              types.SimpleNamespace(k=[types.SimpleNamespace(j=2)]), np.arange(3), np.array(["a", 1], object), np.array(["a", 2], object),
              array.array("d", [1, 2]), array.array("d", [1, 3]), decimal.Decimal("0.1"), decimal.Decimal("0.2"), WithSlots(1), WithSlots(2),
              collections.deque([1]), collections.deque([2]), np.maximum, np.minimum, pathlib.Path("a"), pathlib.Path("b"),
              collections.namedtuple("Pair", "a b")(1, 2), random.normal, open(os.devnull, encoding="utf-8"),  # noqa: SIM115
              np.array(["2026-01-01"], "datetime64[D]"), np.array(["2026-01-02"], "datetime64[D]"), np.array([1], "timedelta64[s]"),
              np.array([("a", 1)], [("k", object), ("j", int)]), np.array([("b", 1)], [("k", object), ("j", int)])]
    of_values = [_xgboost_digest.of_function(around(one)) for one in values]
    assert len(set(of_values)) == len(values), [(one, of_values.count(of)) for one, of in zip(values, of_values)]
    again = [types.SimpleNamespace(k=1.0), WithSlots(2), decimal.Decimal("0.2"), np.array(["a", 2], object)]
    assert [_xgboost_digest.of_function(around(one)) for one in again] == [of_values[place] for place in (0, 12, 10, 6)]
    endless = [types.SimpleNamespace()]
    endless += [endless, endless]
    endless[0].k = endless
    assert _xgboost_digest.of_function(around(endless))
    print("digests", *found[:12], *of_values, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
