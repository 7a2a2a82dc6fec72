"""Makes the reference of the C, C++ and Python interfaces from the comments of headers and from docstrings, without importing or compiling
anything."""

import ast
import pathlib
import re
from typing import Dict, List, Optional, Union

PLACE = re.compile(r"^<!-- (header|module) (\S+) -->$", re.MULTILINE)
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Definition = Union[Function, ast.ClassDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
NAMESPACE = re.compile(r"(inline )?namespace [\w:]+ ?\{|\} *// (inline )?namespace.*|extern \"C\" \{")
NOTHING_TO_READ = re.compile(r"#(ifndef|ifdef|if|else|elif|endif|include|define \w+_H_|define DMLC_USE_CXX11|undef)\b.*|"
                             r"#define \w+_(DLL|EXTERN_C)\b.*")


def fill_in(text: str, source: pathlib.Path) -> str:
    """Returns the page, with the reference of a header or module in place of each comment that names one."""
    def make(match: "re.Match[str]") -> str:
        path = source / match[2]
        return from_module(path, source) if match[1] == "module" else from_header(path.read_text(encoding="utf-8"))
    return PLACE.sub(make, text)


def _comment(lines: List[str]) -> List[str]:
    """Removes the comment marks; "--- messages ---" becomes a heading."""
    said = [re.sub(r"^(///? ?| ?\*/ *$| \* ?|/\* ?)", "", line).replace(" */", "") for line in lines]
    return [re.sub(r"^--- (\w)(.*) ---$", lambda match: f"### {match[1].upper()}{match[2]}", line) for line in said]


def _without(text: str, name: str) -> str:
    """Returns the header without this namespace, which is not for users."""
    return re.sub(rf"^namespace {name} \{{\n.*?^\}}  // namespace {name}\n", "", text, flags=re.MULTILINE | re.DOTALL)


def from_header(text: str) -> str:
    """Returns the header as Markdown: comments as text, and the declarations after them as code. A class is one block of code."""
    chunks: List[List[str]] = [[]]
    depth, in_comment = 0, False
    for line in _without(_without(text, "internal"), "detail").splitlines():
        in_comment = in_comment or line.startswith("/*")
        plain = not in_comment and depth == 0
        if plain and (not line.strip() or NAMESPACE.fullmatch(line.strip()) or NOTHING_TO_READ.fullmatch(line)):
            if chunks[-1]:
                chunks.append([])
            continue
        begins = depth == 0 and line.startswith(("/*", "///")) and chunks[-1] and not _is_comment(chunks[-1], len(chunks[-1]) - 1)
        if begins:
            chunks.append([])
        chunks[-1].append(line)
        if in_comment:
            in_comment = "*/" not in line
        elif not line.lstrip().startswith("//"):
            depth += len(re.findall(r"[({]", line)) - len(re.findall(r"[)}]", line))
    pieces = []
    for chunk in filter(None, chunks):
        first = next((i for i, line in enumerate(chunk) if not _is_comment(chunk, i)), len(chunk))
        said, code = _comment(chunk[:first]), chunk[first:]
        pieces.append("\n".join(said).strip("\n"))
        if code:
            pieces.append("\n".join(["```cpp", *code, "```"]))
    return "\n\n".join(piece for piece in pieces if piece)


def _is_comment(chunk: List[str], index: int) -> bool:
    """Whether the line belongs to the comment at the beginning of the chunk."""
    if chunk[0].startswith("/*"):
        return not any("*/" in line for line in chunk[:index])
    return chunk[index].startswith("//")


def _signature(function: Function) -> str:
    """Returns the function's signature on one line."""
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{function.name}({ast.unparse(function.args)}){result}"


def _imported(name: str, tree: ast.Module, source: pathlib.Path) -> Optional[Definition]:
    """Returns the definition of a name that the module imports from another module of the package, or None."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module and statement.module.startswith("warren."):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    path = source / "python/src" / statement.module.replace(".", "/")
                    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
                    return _public(ast.parse(file.read_text(encoding="utf-8")), source).get(alias.name) if file.exists() else None
    return None


def _public(tree: ast.Module, source: pathlib.Path) -> Dict[str, Definition]:
    """Returns the functions and classes that have a docstring: those in __all__ or, without it, all whose names do not begin with _."""
    own = {one.name: one for one in tree.body if isinstance(one, DEFINITIONS)}
    listed = [ast.literal_eval(one.value) for one in tree.body
              if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id == "__all__"]
    names = listed[0] if listed else list(own)
    found = {name: own.get(name) or _imported(name, tree, source) for name in names if not name.startswith("_")}
    return {name: one for name, one in found.items() if one is not None and ast.get_docstring(one)}


def from_module(path: pathlib.Path, source: pathlib.Path) -> str:
    """Returns the docstrings of a module, its functions, its classes and their methods as Markdown."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    pieces = [ast.get_docstring(tree) or ""]
    for name, one in _public(tree, source).items():
        functions: List[Function] = [one] if isinstance(one, FUNCTIONS) else []
        pieces.append(f"### {name}")
        if isinstance(one, ast.ClassDef):
            functions = [method for method in one.body if isinstance(method, FUNCTIONS) and
                         (method.name == "__init__" or not method.name.startswith("_"))]
            bases = ", ".join(map(ast.unparse, one.bases))
            pieces += [f"```python\nclass {name}{f'({bases})' if bases else ''}\n```", ast.get_docstring(one) or ""]
        for function in functions:
            if function is one or function.name == "__init__" or ast.get_docstring(function):
                pieces += [f"```python\n{_signature(function)}\n```", ast.get_docstring(function) or ""]
    return "\n\n".join(filter(None, pieces))
