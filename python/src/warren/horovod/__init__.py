"""Horovod's API over Warren's engine: scripts written for Horovod run on Warren.

    import warren.horovod.torch as hvd              # or warren.horovod.tensorflow, .keras, .tensorflow.keras

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

Start it with `dmlc-submit --num-workers 4 python train.py`, mpirun or srun; without a launcher there is one rank. A script that contains
`import horovod.torch as hvd` runs unchanged under `python -m warren.compat train.py`. docs/how-to/frameworks.md lists what is supported.

Tensors must be in host memory. Operations run on `warren.collectives.Coordinator`: by name, in any order, with small allreduces fused; sums
have the same bits on all ranks. If a rank dies, the others get, within a second, a HorovodInternalError that names it."""
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._basics import __all__
from warren.horovod.runner import run  # noqa: F401

#: The version of Horovod whose API this is.
__version__ = "0.28.1"
