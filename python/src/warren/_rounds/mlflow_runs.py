"""MLflow in a job: one MLflow run per training run, logged by rank 0.

MLflow's autologging replaces xgboost.train and lightgbm.train in each process that has turned it on. In a job, each worker would make an
MLflow run, and the first rank that predicts by itself, for the model's signature, would make a collective call without the others. So
autologging is disabled while this process is in a job (of several workers, elastic, or started from a program that uses MLflow); rank 0
instead logs the parameters, the metrics and the trained model, with MLflow's public functions and the settings of autolog(). A program that
starts jobs from Python passes its run and its settings to their processes."""
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.util
import inspect
import os
import re
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from warren._launch import membership as _membership
from warren._rounds.sinks import About, Sink, say

#: MLflow's module that contains the settings of autologging for all libraries.
_AUTOLOGGING = "mlflow.utils.autologging_utils"
_LIBRARIES = ("xgboost", "lightgbm")
#: The settings of autolog() that also apply in a job.
_SETTINGS = ("log_models", "registered_model_name", "model_format", "extra_tags")
#: The MLflow tag by which a restarted job finds its run.
_TAG = "warren.training"
#: The minimum time between two batches of metrics in seconds, the maximum fraction of the time spent on sending them, and the maximum number
#: that MLflow accepts at once.
_INTERVAL_S, _MOST_OF_TIME, _MOST_METRICS = 1.0, 0.1, 1000
_RUN_ID = "MLFLOW_RUN_ID"

#: The MLflow variables and settings received from the program that started this process's job.
_told: Optional[Dict[str, Any]] = None


def of_driver(is_local: bool, is_fit: bool, given: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """Returns this process's MLflow variables and settings, for the processes of a job; None if it does not use MLflow, or (after a message)
    if they cannot be read. `is_local`: whether all processes are on this machine. `is_fit`: whether this process logs the model itself.
    `given`: the environment variables that the caller sets for the job; they are omitted from the result."""
    if _AUTOLOGGING not in sys.modules:
        return None
    import mlflow  # pylint: disable=import-outside-toplevel

    try:
        run, place = mlflow.active_run(), str(mlflow.get_tracking_uri())
        variables = {"MLFLOW_TRACKING_URI": place}
        if run is not None:
            variables.update({_RUN_ID: run.info.run_id, "MLFLOW_EXPERIMENT_ID": run.info.experiment_id})
        settings = {library: found for library in _LIBRARIES if (found := _settings_here(library)) is not None}
    except Exception as error:  # pylint: disable=broad-except  # the job can run without MLflow
        say(f"the processes of the job are not told of this program's MLflow: {error}")
        return None
    is_here = place.partition("://")[0] in ("file", "sqlite", place) and place != "databricks"
    if not is_local and (run is not None or settings) and is_here:
        say(f"MLflow's tracking URI {place} is a place on this machine, and the job's processes on other hosts do not log there: use a tracking "
            "server (MLFLOW_TRACKING_URI)")
    return {"variables": {name: value for name, value in variables.items() if name not in given}, "settings": settings,
            "is_fit": is_fit}


def tell(told: Optional[Dict[str, Any]]) -> None:
    """Sets the MLflow variables and settings of this process of a job to `told`, the result of of_driver."""
    global _told  # pylint: disable=global-statement
    _told = told
    # With MLFLOW_RUN_ID, every start_run() of the function would continue the caller's run, and end it.
    os.environ.update({} if told is None else {name: value for name, value in told["variables"].items() if name != _RUN_ID})


def _settings_here(library: str) -> Optional[Dict[str, Any]]:
    """The settings of autologging in this process; None if it is off."""
    if _AUTOLOGGING not in sys.modules:
        return None
    module = sys.modules[_AUTOLOGGING]
    if module.autologging_is_disabled(library):
        return None
    return {name: module.get_autologging_config(library, name) for name in _SETTINGS}


def _logs_here(world: int) -> bool:
    """Whether rank 0 logs, instead of MLflow's own autologging."""
    return world > 1 or _told is not None or _membership.is_elastic()


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function after a module has been imported."""

    def __init__(self, module: str, function: Callable[[], None]) -> None:
        self._module, self._function, self._is_searching = module, function, False

    def find_spec(self, fullname: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        """Finds the module by means of the other finders, and makes its loader call the function."""
        del path, target
        if fullname != self._module or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_call(module: Any) -> None:
                load(module)
                if self in (sys.meta_path or ()):  # a search without an import leaves the finder in place
                    sys.meta_path.remove(self)
                    self._function()
            setattr(spec.loader, "exec_module", load_and_call)
        return spec


@contextlib.contextmanager
def resting(world: int) -> Iterator[None]:
    """Within the block, MLflow's own autologging is disabled if rank 0 logs instead. `world`: the number of the job's workers."""
    if not _logs_here(world):
        yield
        return
    with contextlib.ExitStack() as stack:
        def rest() -> None:
            # While the module is being imported, it is not an attribute of its package yet.
            stack.enter_context(sys.modules[_AUTOLOGGING].disable_autologging())
        if _AUTOLOGGING in sys.modules:
            rest()
            yield
            return
        finder = _AfterImport(_AUTOLOGGING, rest)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            if finder in (sys.meta_path or ()):  # sys.meta_path is None while the interpreter shuts down
                sys.meta_path.remove(finder)


def run_for(about: About) -> Optional[Sink]:
    """Returns the MLflow run of a training run; None if training is not logged here."""
    if not _logs_here(about.world):
        return None
    settings = _settings_here(about.library) or ({} if _told is None else _told["settings"]).get(about.library)
    if settings is None or _is_of_fit() and _RUN_ID not in (_told or {})["variables"]:
        return None
    try:
        return _Run.begun(about, settings)
    except Exception as error:  # pylint: disable=broad-except  # a log must not end the training
        say(f"MLflow does not log this training, which continues: {error}")
        return None


def _is_of_fit() -> bool:
    return _told is not None and bool(_told["is_fit"])


class _Run(Sink):
    """An MLflow run, active on rank 0 during a training run."""

    def __init__(self, about: About, settings: Mapping[str, Any], is_ours: bool, status: str = "") -> None:
        """`is_ours`: whether this class made the run active, and so must end it. `status`: the run's status when it was made active, if it
        is the run of the program that started the job; otherwise empty."""
        import mlflow  # pylint: disable=import-outside-toplevel

        self._mlflow, self._about, self._settings = mlflow, about, settings
        self._is_ours, self._status = is_ours, status
        self._client, self._run_id = mlflow.MlflowClient(), mlflow.active_run().info.run_id
        self._waiting: List[Any] = []
        self._next = 0.0
        self._has_failed = self._has_been_refused = False
        self._rounds = about.begun

    @staticmethod
    def begun(about: About, settings: Mapping[str, Any]) -> Optional["_Run"]:
        """Uses this process's active run or, if there is none, the run of the program that started the job, the run of an earlier attempt,
        or a new one, in this order. Returns None if an earlier attempt has finished the run."""
        import mlflow  # pylint: disable=import-outside-toplevel

        told = {} if _told is None else _told["variables"]
        if mlflow.active_run() is not None:
            made = _Run(about, settings, False)
        elif _RUN_ID in told:
            status = mlflow.get_run(told[_RUN_ID]).info.status
            mlflow.start_run(run_id=told[_RUN_ID])
            made = _Run(about, settings, True, status)
        else:
            tag = _tag(about)
            before = _found(tag) if tag and (_membership.is_elastic() or (os.environ.get("DMLC_NUM_ATTEMPT") or "0") != "0") else None
            if before is not None and before.info.status == "FINISHED":
                say(f"MLflow's run {before.info.run_id} has this training already, of an attempt before; it is not logged again")
                return None
            if before is not None:
                mlflow.start_run(run_id=before.info.run_id)
            else:
                mlflow.start_run(tags={**(settings.get("extra_tags") or {}), **({_TAG: tag} if tag else {})})
            made = _Run(about, settings, True)
        more = {} if about.rounds is None else {"num_boost_round": about.rounds}
        if not _membership.is_elastic():  # a parameter of a run cannot change
            more["num_workers"] = about.world
        made._try("the parameters", lambda: mlflow.log_params({**about.params, **more}))
        return made

    def earlier(self, number: int, metrics: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        metric = self._mlflow.entities.Metric
        self._waiting += [metric(metric_name(name), value, now, number - 1) for name, value in metrics.items()]

    def round(self, number: int, of: Optional[int], metrics: Mapping[str, float]) -> None:
        self.earlier(number, metrics)
        self._rounds = number
        begin = time.monotonic()
        if begin >= self._next:
            self._send()
            end = time.monotonic()
            self._next = end + max(_INTERVAL_S, (end - begin) / _MOST_OF_TIME)

    def end(self, model: Any) -> None:
        if model is not None:
            best: Any = getattr(model, "best_iteration", None)
            # LightGBM's value is -1 or 0 if the training has not stopped early.
            if best is not None and (self._about.library == "xgboost" or best > 0):
                now = int(time.time() * 1000)
                self._waiting += [self._mlflow.entities.Metric(name, float(value), now, 0)
                                  for name, value in (("best_iteration", best), ("stopped_iteration", self._rounds - 1))]
        self._send()
        if model is not None and self._settings.get("log_models") in (None, True) and not _is_of_fit():
            self._try("the model", lambda: self._log(model))
        if self._is_ours:
            self._try("its end", lambda: self._mlflow.end_run(self._last_status(model is None)))

    def _last_status(self, has_failed: bool) -> str:
        """The status to which the run is set when it ends."""
        if not self._status:
            return "FAILED" if has_failed else "FINISHED"
        # The program that started the job may have ended the run before the training began, or since.
        return self._status if self._status != "RUNNING" else str(self._client.get_run(self._run_id).info.status)

    def _send(self) -> None:
        while self._waiting:
            batch = self._waiting[:_MOST_METRICS]
            if not self._try("metrics", lambda batch=batch: self._client.log_batch(self._run_id, metrics=batch)):  # type: ignore[misc]
                if not self._has_been_refused:
                    return  # perhaps a temporary failure: these metrics are sent again with the next ones
                for name in {one.key for one in batch}:  # one of the names may be invalid: send the metrics of each name separately
                    of_name = [one for one in batch if one.key == name]
                    self._try(f"the metric {name!r}", lambda of_name=of_name: self._client.log_batch(self._run_id, metrics=of_name))  # type: ignore[misc]
            del self._waiting[:len(batch)]

    def _log(self, model: Any) -> None:
        log_model = importlib.import_module(f"mlflow.{self._about.library}").log_model
        known = inspect.signature(log_model).parameters
        more = {name: self._settings.get(name) for name in ("registered_model_name", "model_format")}
        log_model(model, **{"name" if "name" in known else "artifact_path": "model"},
                  **{name: value for name, value in more.items() if value is not None and name in known})

    def _try(self, what: str, work: Callable[[], Any]) -> bool:
        """Calls `work`, and returns whether it succeeded. Prints the first failure."""
        try:
            work()
            return True
        except Exception as error:  # pylint: disable=broad-except  # a log must not end the training
            self._has_been_refused = getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE"
            if not self._has_failed:
                say(f"MLflow's run {self._run_id} does not get {what} of this training, which continues: {error}")
            self._has_failed = True
            return False


def metric_name(name: str) -> str:
    """The name that MLflow's autologging gives to a metric, with "_" for other characters that MLflow refuses."""
    return re.sub(r"[^\w.:/ -]", "_", name.replace("@", "_at_"))


def _tag(about: About) -> str:
    """Returns a tag that identifies a training run in all attempts of its job, by its number and its parameters (the number alone does not
    suffice, because a later attempt may skip training runs). Empty without a job's token."""
    token = os.environ.get("DMLC_JOB_TOKEN", "")
    if not token:
        return ""
    words = repr((token, about.library, sorted((str(name), str(value)) for name, value in about.params.items())))
    return f"{hashlib.sha256(f'warren training {words}'.encode()).hexdigest()[:16]}/{about.number}"


def _found(tag: str) -> Any:
    """Returns the newest run with this tag in the active experiment, or None."""
    import mlflow  # pylint: disable=import-outside-toplevel

    runs = mlflow.search_runs(filter_string=f"tags.`{_TAG}` = '{tag}'", max_results=1, output_format="list")
    return runs[0] if runs else None
