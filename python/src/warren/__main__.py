"""`warren data ...`, `warren submit ...`, `warren tracker ...`: the package's programs under one name."""
import sys
from typing import NoReturn

_PROGRAMS = {"data": "looks into data sets, checks them, and makes others of them (rabit-data)",
             "submit": "starts a job (dmlc-submit)", "tracker": "lets workers find each other (rabit-tracker)"}


def main() -> NoReturn:
    """The program that the first argument names, with the others."""
    import importlib  # pylint: disable=import-outside-toplevel

    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name not in _PROGRAMS:
        out = sys.stdout if name in ("-h", "--help") else sys.stderr
        print("usage: warren PROGRAM ...\n" + "\n".join(f"  {one:8} {what}" for one, what in _PROGRAMS.items()), file=out)
        sys.exit(0 if out is sys.stdout else 2)
    del sys.argv[1]
    importlib.import_module(f"warren.{name}").main()
    sys.exit(0)


if __name__ == "__main__":
    main()
