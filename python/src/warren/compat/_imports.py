"""Import hooks for the packages that warren.compat supports."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any, Callable, List, Optional, Sequence


#: Horovod's submodules whose contents warren.horovod has in the enclosing module: `horovod.torch.mpi_ops` becomes `horovod.torch`.
_INSIDE = ("basics", "compression", "exceptions", "functions", "mpi_ops", "optimizer", "process_sets",
           "sampler", "state", "sync_batch_norm")


class _Renamed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Provides the modules of one package under the names of another: `horovod.torch` is warren.horovod.torch, one module with two names.
    An installed package of that name is ignored."""

    def __init__(self, name: str, ours: str) -> None:
        self._name, self._ours = name, ours

    def find_spec(self, fullname: str, path: Optional[Sequence[Any]],  # pylint: disable=unused-argument
                  target: Optional[types.ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != self._name and not fullname.startswith(self._name + "."):
            return None
        try:
            found = importlib.util.find_spec(self._our_name(fullname))
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(f"{fullname} is not part of {self._ours}; docs/how-to/frameworks.md lists what it has",
                                      name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)

    def _our_name(self, fullname: str) -> str:
        parts = fullname.split(".")[1:]
        while parts and parts[-1] in _INSIDE:
            parts.pop()
        return ".".join([self._ours, *parts])

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        self._spec_before = importlib.import_module(self._our_name(spec.name)).__spec__
        return sys.modules[self._our_name(spec.name)]

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec_before  # the import system has replaced it with the spec for the other name


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls a function once, when a package has been imported."""

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self._name, self._function, self._is_searching = name, function, False

    def find_spec(self, fullname: str, path: Optional[Sequence[Any]],  # pylint: disable=unused-argument
                  target: Optional[types.ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != self._name or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:  # a search without an import leaves the finder in place
                sys.meta_path.remove(self)
                self._function()

        loader.exec_module = exec_module


#: Functions to call once XGBoost is imported and its old features are restored.
_xgboost_is_there: List[Callable[[], None]] = []


def when_xgboost_is_there(function: Callable[[], None]) -> None:
    if "warren.compat._xgboost" in sys.modules:
        function()
    else:
        _xgboost_is_there.append(function)


def _install_xgboost() -> None:
    from warren.compat import _xgboost  # pylint: disable=import-outside-toplevel
    _xgboost.install()
    for function in _xgboost_is_there:
        function()


def install() -> None:
    """Installs the hooks. Called once."""
    sys.meta_path.insert(0, _Renamed("horovod", "warren.horovod"))
    if "xgboost" in sys.modules:
        _install_xgboost()
    else:
        sys.meta_path.insert(0, _WhenImported("xgboost", _install_xgboost))
