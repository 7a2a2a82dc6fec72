"""The state of a booster's random number generator, from XGBoost 3.3 on: a std::mt19937 in the booster's configuration, in the text format
of the C++ library. Earlier versions keep the state in thread-local variables, which cannot be accessed."""
import json
from typing import Any, Tuple

import numpy as np
import xgboost as xgb

from warren._xgboost.versions import VERSION

_NUMBERS = 624


def is_known() -> bool:
    """Whether this version of XGBoost exposes the state: boosters have one generator of their own for all random draws."""
    return VERSION >= (3, 3)


def state_of(model: "xgb.Booster") -> str:
    """Returns the state of a model. A collective call if the model is not configured yet."""
    return state_in(config_of(model))


def state_in(config: Any) -> str:
    """The state in a configuration."""
    return str(config["learner"]["generic_param"]["rng_state"])


def set_state(model: "xgb.Booster", state: str) -> None:
    """Sets the state of a configured model, which configures itself again in its next call."""
    config = config_of(model)
    config["learner"]["generic_param"]["rng_state"] = state
    model.load_config(json.dumps(config))


def drawn(state: str) -> Tuple[int, str]:
    """Returns the next number, and the state after it has been drawn."""
    numbers = [int(word) for word in state.split()]
    generator: Any = np.random.MT19937()
    generator.state = {"bit_generator": "MT19937", "state": {"key": np.array(numbers[:_NUMBERS], np.uint32), "pos": numbers[_NUMBERS]}}
    found = int(generator.random_raw())
    after = generator.state["state"]
    return found, " ".join(map(str, (*after["key"].tolist(), int(after["pos"]))))


def config_of(model: "xgb.Booster") -> Any:
    """Returns the configuration of a model. A collective call if the model is not configured yet."""
    return json.loads(model.save_config())
