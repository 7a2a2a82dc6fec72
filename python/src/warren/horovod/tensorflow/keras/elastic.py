"""`hvd.elastic` for Keras, under its name in Horovod's TensorFlow module; see warren.horovod.keras.elastic."""
from warren.horovod.keras.elastic import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod.keras.elastic import __all__ as __all__  # pylint: disable=useless-import-alias
