"""A data set of an elastic training run, of which this worker holds some shares."""
import inspect
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

from warren._elastic.rows import Files, joined
from warren._elastic.shares import Range, ranges_of
from warren._lightgbm import datasets as _datasets
from warren.data import _check, _load
from warren.data._table import Table


#: The arguments of lightgbm.Dataset that a caller cannot set: they follow from the rows, or would apply to one worker's rows only.
_OF_ROWS = ("self", "data", "label", "reference", "weight", "group", "init_score", "position")


class Asked(NamedTuple):
    """The data set to read, and the options of the Dataset."""

    wanted: _load.Wanted
    options: Dict[str, Any]
    is_whole: bool  #: whether every worker reads all rows
    progress: bool
    is_checked: bool  #: whether the caller requested a table of each worker's rows


def asked(uri: Any, given: Mapping[str, Any]) -> Asked:
    """Returns the data set that load_dataset would read with the arguments `given`. Raises TypeError or ValueError for arguments that
    cannot be used."""
    options = dict(given)
    _datasets.require_one_label(options.get("label"))
    is_checked, is_whole = _check.wanted(options.pop("check", None)), bool(options.pop("whole", False))
    progress, margin = bool(options.pop("progress", True)), options.pop("init_score", None)
    of_files = {name: options.pop(name) for name in list(options) if name in _load.Wanted.ARGUMENTS}
    known = set(inspect.signature(lightgbm.Dataset.__init__).parameters).difference(_OF_ROWS)
    for name in options:
        if name not in known:
            raise TypeError(f"Data() has no argument {name!r}, nor have load_dataset and lightgbm.Dataset for rows of files")
    return Asked(_load.Wanted(uri, **{**of_files, "base_margin": margin}), options, is_whole, progress, is_checked)


class Rows(Files):
    """A data set of `count` shares, some of which this worker holds. The rows are also kept as they were read, for the predictions from which
    a later generation continues."""

    def __init__(self, what: Asked, count: int) -> None:
        super().__init__(what.wanted, what.progress, count)
        self._asked = what
        self._pieces: List[Tuple[Range, Table]] = []
        #: LightGBM's Dataset of this worker's shares, once it has been made.
        self.dataset: Optional["lightgbm.Dataset"] = None
        #: This worker's shares, in the order in which it received them.
        self.held: List[int] = []

    @property
    def is_whole(self) -> bool:
        """Whether every worker holds all rows."""
        return self._asked.is_whole

    def read(self, shares: List[int], check: Callable[[], None]) -> None:
        """Makes this worker hold these shares: reads the missing ones, without the other workers. The Dataset must then be made again. `check`
        is called often, and may raise an exception: this worker then holds the same shares as before. Raises the errors of reading."""
        kept = [(place, table) for place, table in self._pieces if set(range(*place)) <= set(shares)]
        missing = ranges_of(sorted(set(shares).difference(*(range(*place) for place, _ in kept))))
        read = [_datasets.as_lightgbm_reads(table, self._asked.wanted) for table in self.tables(missing, check)]
        self._pieces = sorted([*kept, *zip(missing, read)], key=lambda piece: piece[0])
        self.held, self.dataset = list(shares), None

    @property
    def names(self) -> Optional[List[str]]:
        """The names of the features, in order; None if they are numbered or unknown."""
        return self._pieces[0][1].names if self._pieces else None

    @property
    def has_margin(self) -> bool:
        """Whether the rows have initial scores of their own."""
        return any(table.base_margin is not None for _, table in self._pieces)

    def __len__(self) -> int:
        return sum(len(table) for _, table in self._pieces)

    def may_be_bundled(self) -> bool:
        """Whether LightGBM may bundle features of this worker's rows: the two features with the fewest nonzero values have at most about as
        many of them as there are rows. LightGBM tolerates a few rows in which both features are nonzero, and ignores one of the two
        values."""
        count = len(self)
        found = sum(np.asarray((table.features != 0).sum(axis=0)).ravel() for _, table in self._pieces)
        return count > 0 and bool(np.sort(found)[:2].sum() <= count * (1 + 1e-4)) and np.size(found) > 1

    def make(self, params: Mapping[str, Any], reference: Optional["lightgbm.Dataset"]) -> None:
        """Makes the Dataset: with the bins and parameters of `reference`, or, without one, with `params` and with bins on which the workers
        agree in a collective call."""
        table = joined([table for _, table in self._pieces])
        dataset = _datasets.of_table(table, self._asked.options, params, reference)
        dataset.warren_is_share = not self.is_whole
        dataset.construct()
        dataset.reference = None  # otherwise the reference would stay in memory
        dataset.pandas_categorical = _datasets.categories_of(table)  # the reference has none on workers that join later
        dataset.warren_is_elastic = True
        self.dataset = dataset

    def start_from(self, trees: Optional["lightgbm.Booster"], takes_margin: bool, threads: Mapping[str, Any]) -> None:
        """Makes the rows start from the predictions of these trees, added to the rows' own scores if they have any and `takes_margin`. Trees
        are added to the scores one after the other, as a Booster does, so that the sums are the same."""
        assert self.dataset is not None
        self.dataset.set_init_score(None)
        found = [self._start(table, trees, takes_margin, threads) for _, table in self._pieces]
        scores = [one for one in found if one is not None]
        if scores:
            self.dataset.set_init_score(np.concatenate(scores))

    @staticmethod
    def _start(table: Table, trees: Optional["lightgbm.Booster"], takes_margin: bool, threads: Mapping[str, Any]) -> Optional[NDArray[Any]]:
        margin = None if table.base_margin is None or not takes_margin else table.base_margin.astype(np.float64)
        if trees is None:
            return margin
        how = {"raw_score": True, "predict_disable_shape_check": True, **threads}
        if len(table) == 0:
            shape = (0,) if trees.num_model_per_iteration() == 1 else (0, trees.num_model_per_iteration())
            return np.zeros(shape)
        if margin is None:
            found: NDArray[Any] = trees.predict(table.features, num_iteration=-1, **how)
            return found
        scores: NDArray[Any] = margin
        for iteration in range(trees.current_iteration()):
            one = trees.predict(table.features, start_iteration=iteration, num_iteration=1, **how)
            scores = scores.reshape(one.shape) + one
        return scores
