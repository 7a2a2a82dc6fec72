"""`horovod.common`: what all of Horovod's modules have."""
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._basics import __all__
