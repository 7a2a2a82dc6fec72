"""`horovod.common.elastic`: the common part of the elastic modules of all frameworks."""
from warren.horovod._elastic import ObjectState, State, run_fn

__all__ = ["ObjectState", "State", "run_fn"]
