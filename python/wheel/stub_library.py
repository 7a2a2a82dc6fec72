#!/usr/bin/env python3
"""stub_library.py LIBRARY READELF COMPILER OUTPUT NODE=NEWEST ...: makes a shared library to link against. It has no code, but the
symbols of LIBRARY up to the given versions, such as GLIBCXX=3.4.24 CXXABI=1.3.11. It lacks newer symbols, so the linker looks for those
elsewhere.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Dict, List, NamedTuple, Tuple

_KINDS = {"FUNC": "%function", "OBJECT": "%object", "TLS": "%tls_object"}
_ROW = re.compile(r" *\d+: [0-9a-f]+ +(\d+|0x[0-9a-f]+) (FUNC|OBJECT|TLS) +(GLOBAL|WEAK|UNIQUE) +DEFAULT +(\d+) "
                  r"([^@ ]+)@@?([A-Z]+)_([0-9.]+)$")


class Symbol(NamedTuple):
    """A symbol that a library defines, with the numbers of its version."""
    name: str
    kind: str
    size: int
    node: str
    version: Tuple[int, ...]


def numbers(text: str) -> Tuple[int, ...]:
    """Returns the numbers of a version."""
    return tuple(int(number) for number in text.split("."))


def symbols_of(listing: str, newest: Dict[str, Tuple[int, ...]]) -> List[Symbol]:
    """Returns the symbols in readelf's output, each name once, in its newest version that is not too new."""
    chosen: Dict[str, Symbol] = {}
    for line in listing.splitlines():
        row = _ROW.match(line)
        if row is None or row[6] not in newest:
            continue
        symbol = Symbol(row[5], row[2], int(row[1], 0), row[6], numbers(row[7]))
        if symbol.version <= newest[symbol.node] and (symbol.name not in chosen or chosen[symbol.name].version < symbol.version):
            chosen[symbol.name] = symbol
    return list(chosen.values())


def assembler_of(symbols: List[Symbol]) -> str:
    """Returns assembler code that defines the symbols. Kinds and sizes matter to programs that are linked with it: a program reserves
    space for its own copy of each data object (a copy relocation), with the size given here."""
    lines = []
    for symbol in symbols:
        section = {"FUNC": ".text", "OBJECT": ".bss", "TLS": ".section .tbss,\"awT\",%nobits"}[symbol.kind]
        size = max(symbol.size, 1)
        lines += [section, ".balign 16", f".globl {symbol.name}", f".type {symbol.name}, {_KINDS[symbol.kind]}",
                  f".size {symbol.name}, {size}", f"{symbol.name}: .zero {size if symbol.kind != 'FUNC' else 16}"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""])


def map_of(symbols: List[Symbol]) -> str:
    """Returns the linker's version script."""
    nodes: Dict[str, List[str]] = {}
    for symbol in symbols:
        nodes.setdefault(f"{symbol.node}_{'.'.join(map(str, symbol.version))}", []).append(symbol.name)
    return "".join(f"{node} {{ global: {' '.join(f'{name};' for name in names)} }};\n" for node, names in nodes.items()) + \
        "LOCAL { local: *; };\n"


def main() -> None:
    library, readelf, compiler, output, *limits = sys.argv[1:]
    newest = {name: numbers(version) for name, _, version in (limit.partition("=") for limit in limits)}
    listing = subprocess.run([readelf, "-W", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    symbols = symbols_of(listing, newest)
    if not symbols:
        sys.exit(f"stub_library: {library} has no symbols of {', '.join(limits)}")
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder) / "stub.s", pathlib.Path(folder) / "stub.map"
        source.write_text(assembler_of(symbols), encoding="utf-8")
        versions.write_text(map_of(symbols), encoding="utf-8")
        subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{pathlib.Path(output).name}",
                        f"-Wl,--version-script={versions}", "-o", output, str(source)], check=True)


if __name__ == "__main__":
    main()
