"""`horovod.common`: the part of the API that all of Horovod's modules share."""
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._basics import __all__
