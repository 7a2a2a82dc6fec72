"""See warren.horovod.keras.callbacks."""
from warren.horovod.keras.callbacks import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod.keras.callbacks import __all__ as __all__  # pylint: disable=useless-import-alias
