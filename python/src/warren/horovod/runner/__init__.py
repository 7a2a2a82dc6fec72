"""`horovod.runner`, whose launcher dmlc-submit replaces."""
from typing import Any, NoReturn, Optional


def run(func: Any, args: Any = (), kwargs: Optional[Any] = None, np: int = 1, *_: Any, **__: Any) -> NoReturn:
    """Raises NotImplementedError, which says how to start the function: no launcher here calls a function in new processes."""
    name = getattr(func, "__name__", "the function")
    raise NotImplementedError(
        f"horovod.run: warren.horovod cannot call {name} in {np} new processes. Call {name}(...) at the end of a script, and start that "
        f"with dmlc-submit --num-workers {np} python SCRIPT (or python -m warren.compat SCRIPT, if it imports horovod)")
