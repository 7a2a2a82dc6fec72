"""Horovod's API for Keras over Warren's engine, under its name in Horovod's TensorFlow module; see warren.horovod.keras."""
from warren.horovod.keras import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod.keras import __all__ as __all__  # pylint: disable=useless-import-alias
