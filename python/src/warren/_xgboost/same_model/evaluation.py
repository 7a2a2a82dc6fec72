"""Evaluates models with the same values that one process would get from all rows. XGBoost's own values are means of the workers' metrics
(auc, aucpr, functions of the caller), or sums whose last bits depend on the number of workers; early stopping writes them into the model."""
import contextlib
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import xgboost as xgb

from warren._frameworks.replacing import replaced
from warren._xgboost.same_model.alone import alone_on_root
from warren._xgboost.same_model.intercept import of_objective
from warren._xgboost.same_model.rows import OfAllRows, Order, gathered
from warren.data._peers import Peers, of_caller


class _Evaluation:
    """Evaluates models on the rows of all workers: rank 0 has the labels and weights of all rows, and receives their margins in each
    round. `eval_set` is XGBoost's own method."""

    def __init__(self, params: Mapping[str, Any], peers: Peers, eval_set: Callable[..., str]) -> None:
        self._params, self._peers, self._eval_set = of_objective(params), peers, eval_set
        for name in ("eval_metric", "disable_default_eval_metric"):
            if name in params:
                self._params[name] = params[name]
        # By the id of a matrix: the matrix itself, the order of all rows, and a matrix with the fields of all rows (None except on rank 0).
        self._known: Dict[int, Tuple[Any, Order, Any]] = {}

    def line(self, model: "xgb.Booster", evals: Any, iteration: int, feval: Optional[Callable[..., Any]], output_margin: bool) -> str:
        """Returns the text with the metrics, in the form in which eval_set returns it. A collective call."""
        peers = self._peers
        for matrix, _ in evals:
            if id(matrix) not in self._known:
                self._known[id(matrix)] = matrix, Order(matrix, peers), alone_on_root(OfAllRows(matrix, peers).matrix, peers)
        margins = [self._known[id(matrix)][1].rows(gathered(model.predict(matrix, output_margin=True), peers)) for matrix, _ in evals]

        def evaluated() -> str:
            wholes = [self._known[id(matrix)][2] for matrix, _ in evals]
            for whole, margin in zip(wholes, margins):
                whole.set_base_margin(margin)
            # This model has no trees, so its margins are the base margins.
            empty = xgb.Booster({**self._params, "verbosity": 0}, wholes)
            return self._eval_set(empty, [(whole, name) for whole, (_, name) in zip(wholes, evals)], iteration, feval, output_margin)

        return str(peers.broadcast(alone_on_root(evaluated, peers), 0))


@contextlib.contextmanager
def of_all_rows(params: Mapping[str, Any], peers: Peers, gives_margins: bool) -> Iterator[None]:
    """Within the block, the models that this thread trains are evaluated on the rows of all workers. `gives_margins`: whether the caller's
    metric receives margins, which it does if the objective is also a function of the caller. All workers enter the block."""
    def of_all(inner: Callable[..., str]) -> Callable[..., str]:
        evaluation = _Evaluation(params, peers, inner)

        def eval_set(self: Any, evals: Any, iteration: int = 0, feval: Optional[Callable[..., Any]] = None,
                     output_margin: bool = True) -> str:
            if not evals:
                return inner(self, evals, iteration, feval, output_margin)
            metric = feval if feval is None else of_caller(feval)
            return evaluation.line(self, list(evals), iteration, metric, output_margin and gives_margins)
        return eval_set

    def as_it_is(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda score: score

    with replaced("eval_set", of_all, xgb.Booster), replaced("_allreduce_metric", as_it_is, xgb.callback):
        yield
