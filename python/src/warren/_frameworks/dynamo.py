"""Keeps TorchDynamo out of this package.

Programs that torch.compile traces call functions of this package, for example in DistributedDataParallel and in autograd's hooks. These
functions call the engine through ctypes, so Dynamo cannot trace them. (PyTorch's own backends are C++, which it does not trace either.)"""
import functools
import sys
import types
from typing import Any, Callable, Iterator, Optional

_PACKAGE = "warren"


def _skipper() -> Optional[Callable[[types.CodeType], None]]:
    """Returns a function that makes Dynamo run the frames of a code object unchanged, or None if this PyTorch has no such function: 1.x,
    which has no Dynamo, and versions with other internals. `torch.compiler.disable` is the public way to do the same, but it imports all of
    Dynamo, which takes most of a second."""
    try:
        from torch._C._dynamo import eval_frame  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    if hasattr(eval_frame, "skip_code"):  # up to PyTorch 2.6
        skip_code: Callable[[types.CodeType], None] = eval_frame.skip_code
        return skip_code
    if not hasattr(eval_frame, "set_code_exec_strategy"):
        return None
    action = eval_frame._FrameAction.SKIP
    strategy = eval_frame._FrameExecStrategy(action, action)  # for the frame, and for the frames that it calls

    def skip(code: types.CodeType) -> None:
        eval_frame.set_code_exec_strategy(code, strategy)

    return skip


def _function_in(value: Any) -> Any:
    """The function inside a static or class method, a property or a cache; any other value unchanged."""
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools._lru_cache_wrapper):  # pylint: disable=protected-access
        return value.__wrapped__
    return value


def _functions_of(namespace: Any, module: types.ModuleType) -> Iterator[types.FunctionType]:
    """Yields the functions and methods in `namespace`, a module or class, that are defined in `module`."""
    for value in map(_function_in, list(vars(namespace).values())):
        if isinstance(value, types.FunctionType) and value.__code__.co_filename == module.__file__:
            yield value
        elif isinstance(value, type) and value.__module__ == module.__name__:
            yield from _functions_of(value, module)


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)


def leave_alone() -> None:
    """Keeps Dynamo from compiling or inlining the functions of this package's modules that have been loaded so far."""
    skip = _skipper()
    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != _PACKAGE or getattr(module, "__file__", None) is None:
            continue
        for function in _functions_of(module, module):
            function._torchdynamo_disable = True  # type: ignore[attr-defined]
            for code in _with_inner(function.__code__):
                skip(code)
