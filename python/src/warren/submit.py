"""`python -m warren.submit ...` is `dmlc-submit ...`."""
import sys
from typing import NoReturn

from warren._engine import native as _native


def main() -> NoReturn:
    """Replaces this process with dmlc-submit, with the same arguments."""
    _native.run("dmlc-submit", sys.argv[1:])


if __name__ == "__main__":
    main()
