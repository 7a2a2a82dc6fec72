"""`horovod.common.elastic`: what the elastic modules of all frameworks share."""
from warren.horovod._elastic import ObjectState, State, run_fn

__all__ = ["ObjectState", "State", "run_fn"]
