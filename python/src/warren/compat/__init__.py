"""Runs scripts written for other libraries unchanged:

- XGBoost 0.7 to 1.x: restores features that newer versions removed: `xgboost.rabit`, DMatrix from a text file, arguments such as `feval`
  and `ntree_limit` (docs/how-to/xgboost.md has a complete list);
- Horovod: `import horovod.torch`, `horovod.tensorflow`, `horovod.keras` import warren.horovod's modules (docs/how-to/frameworks.md).

In a script, `import warren.compat` comes before the first use of these libraries. To run an unmodified script:

    dmlc-submit --num-workers 3 python -m warren.compat script.py [arguments]
    dmlc-submit --num-workers 3 python -m warren.compat -m module [arguments]

Libraries that a script does not import cost nothing, and need not be installed."""
from warren.compat import _imports

_imports.install()
