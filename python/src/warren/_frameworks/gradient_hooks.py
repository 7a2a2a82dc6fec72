"""Hooks on the gradients of PyTorch's parameters."""
from typing import Any, Callable


def when_accumulated(parameter: Any, function: Callable[[], None]) -> Any:
    """Makes autograd call `function` after each backward pass that has added to the parameter's gradient. Returns the hook, which must be
    kept alive; its method `remove` removes the hook."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # from PyTorch 2.1 on
        return parameter.register_post_accumulate_grad_hook(lambda _: function())
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    hook = accumulator.register_hook(lambda *_: function())
    hook.accumulator = accumulator  # autograd itself does not keep it alive
    return hook
