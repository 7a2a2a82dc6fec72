"""Horovod's API over Warren's engine: scripts that were written for Horovod run on Warren.

    import warren.horovod.torch as hvd              # or warren.horovod.tensorflow, .keras, .tensorflow.keras
    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

Started with `dmlc-submit --num-workers 4 python train.py`, mpirun or srun; alone there is one rank. A script that says
`import horovod.torch as hvd` runs as it is by `python -m warren.compat train.py`. docs/how-to/frameworks.md says what is there.

Tensors in host memory. Operations are those of `warren.collectives.Coordinator`: by name, in any order, small allreduces packed;
sums have the same bits on all ranks; a rank that dies is named to the others by a HorovodInternalError within a second.
"""
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._basics import __all__
from warren.horovod.runner import run  # noqa: F401

#: The version of Horovod whose API this is.
__version__ = "0.28.1"
