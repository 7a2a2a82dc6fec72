"""Imports within the Python package have no cycles: no module imports a module that depends on it, not even inside a
function."""

import ast
import graphlib
import os
import unittest
from pathlib import Path

PACKAGE = Path(os.environ["WARREN_SOURCE"]) / "python/src/warren"


def name_of(path):
    """The dotted name of the module at `path`, such as warren.data._load."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name):
    """The modules of the package that a module imports anywhere: at the top, in functions, or only for type checking."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {module if module in MODULES else node.module for module in modules}
    return {module for module in found if module in MODULES} - {name}


def part_of(name):
    """The top-level module or folder of the package that contains a module, such as warren.data."""
    return ".".join(name.split(".")[:2])


def circle(graph):
    """A cycle of the graph, such as "a imports b imports a", or None."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " imports ".join(reversed(error.args[1]))
    return None


class ImportsTest(unittest.TestCase):
    def test_no_circle_of_modules(self):
        graph = {name: imports(name) for name in MODULES}
        self.assertGreater(sum(map(len, graph.values())), 300)
        self.assertIsNone(circle(graph))

    def test_no_circle_of_the_folders_and_modules_at_the_top(self):
        graph = {}
        for name in MODULES:
            graph.setdefault(part_of(name), set()).update(part_of(module) for module in imports(name))
        self.assertGreater(len(graph), 20)
        for part, modules in graph.items():
            modules.discard(part)
        self.assertIsNone(circle(graph))

    def test_private_modules_are_in_folders(self):
        self.assertEqual([path.name for path in PACKAGE.glob("_*.py") if not path.name.startswith("__")], [])


if __name__ == "__main__":
    unittest.main()
