"""The state of the random numbers that a booster draws, from XGBoost 3.3 on: a std::mt19937 in the booster's configuration, as the text that
the C++ library writes. Earlier versions keep the state in their threads, where it cannot be reached."""
import json
from typing import Any, Tuple

import numpy as np
import xgboost as xgb

from warren._xgboost.versions import VERSION

#: The first version whose boosters have their own generator, for all that they draw.
FIRST = (3, 3)
_NUMBERS = 624


def is_known() -> bool:
    """Whether this version of XGBoost has such a state."""
    return VERSION >= FIRST


def state_of(model: "xgb.Booster") -> str:
    """The state of a model that is configured; for others this is a collective call."""
    return state_in(config_of(model))


def state_in(config: Any) -> str:
    """The state in a configuration."""
    return str(config["learner"]["generic_param"]["rng_state"])


def set_state(model: "xgb.Booster", state: str) -> None:
    """Makes a model that is configured go on from this state. The model configures itself again in its next call."""
    config = config_of(model)
    config["learner"]["generic_param"]["rng_state"] = state
    model.load_config(json.dumps(config))


def drawn(state: str) -> Tuple[int, str]:
    """The next number, and the state after it."""
    numbers = [int(word) for word in state.split()]
    generator: Any = np.random.MT19937()
    generator.state = {"bit_generator": "MT19937", "state": {"key": np.array(numbers[:_NUMBERS], np.uint32), "pos": numbers[_NUMBERS]}}
    found = int(generator.random_raw())
    after = generator.state["state"]
    return found, " ".join(map(str, (*after["key"].tolist(), int(after["pos"]))))


def config_of(model: "xgb.Booster") -> Any:
    """The configuration of a model; of one that is not configured it is a collective call."""
    return json.loads(model.save_config())
