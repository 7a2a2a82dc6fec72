"""Runs scripts that were written for others as they are:

- XGBoost 0.7 to 1.x: what newer versions removed is there again, `xgboost.rabit`, DMatrix from a text file, arguments such as
  `feval` and `ntree_limit` (docs/how-to/xgboost.md has them all);
- Horovod: `import horovod.torch`, `horovod.tensorflow`, `horovod.keras` are warren.horovod's modules (docs/how-to/frameworks.md).

In a script `import warren.compat` comes before the first use; a script that is not to be changed is run as

    dmlc-submit --num-workers 3 python -m warren.compat script.py [arguments]
    dmlc-submit --num-workers 3 python -m warren.compat -m module [arguments]

What a script does not import costs nothing, and need not be installed.
"""
from warren.compat import _imports

_imports.install()
