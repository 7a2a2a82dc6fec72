"""The Python with PyTorch for the tests of warren.torch and warren.horovod: Debian's, or the one that WARREN_TORCH_PYTHON names."""
import os
import subprocess
import sys

PYTHON = os.environ.get("WARREN_TORCH_PYTHON", "/usr/bin/python3")
#: PyTorch's version; empty without PyTorch.
VERSION = subprocess.run([PYTHON, "-c", "import numpy, torch; print(torch.__version__)"], text=True, check=False, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout.strip()
WHY_NOT = None if VERSION else f"SKIPPED: {PYTHON} has no PyTorch; apt-get install python3-torch"
if WHY_NOT:
    print(WHY_NOT, file=sys.stderr)
