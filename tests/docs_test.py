"""Tests the README and the docs: required content, working links, names that exist, and code blocks that are marked as run or not run."""

import ast
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/docs"), str(SOURCE / "docs"), str(SOURCE / "docs/pictures")]
import from_sources  # noqa: E402
import marked  # noqa: E402
import training_chart  # noqa: E402

README = SOURCE / "README.md"
FIRST_SCREEN = 54
COMMIT = re.compile(r"\bcommit [0-9a-f]{7,40}\b")
FIGURE = re.compile(r"[<~]?[-0-9.,]*[0-9][0-9.,]*( ?(s|ms|us|µs|x|%|MB|GB|MB/s|GB/s|Ki|Mi))?")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(path):
    return path.read_text(encoding="utf-8")


def tables(text):
    """Yields (text, rows) for each table. `text`: the text between the table and the previous table or heading."""
    before, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
        elif rows:
            yield "\n".join(before), rows
            before, rows = [], []
        if not line.startswith("|"):
            before = [] if line.startswith("#") else [*before, line]


def has_figures(rows):
    """Whether at least half of the table's cells are numbers, not counting the header and the first cell of each row."""
    cells = [cell.strip() for row in rows[2:] for cell in row.strip("|").split("|")[1:]]
    return 2 * sum(bool(FIGURE.fullmatch(cell)) for cell in cells) >= len(cells)


def anchors(text):
    """The anchors of the headings, as GitHub and MyST generate them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-") for heading in headings}


def documents():
    """The two READMEs and the pages in docs/, except for docs/notes, which describes the past."""
    return [README, SOURCE / "python/README.md", *(page for page in sorted((SOURCE / "docs").rglob("*.md")) if page.parent.name != "notes")]


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=SOURCE, capture_output=True,
                          text=True, check=True).stdout.split()


def options_of_dmlc_submit():
    """Maps each option in docs/reference/options.md to whether it takes the next word as its value."""
    rows = re.findall(r"^\| `(-[^`]*)` \|", read(SOURCE / "docs/reference/options.md"), re.MULTILINE)
    return {name: "[=" not in row and " " in row.split(", ")[-1] for row in rows for name in re.findall(r"(?:^|, )(--?[a-zA-Z-]+)", row)}


def commands_of_dmlc_submit(text):
    """Yields the words after `dmlc-submit` for each command, in a code block or in inline code, that begins with an option."""
    lines = text.replace("\\\n", " ")
    for found in re.findall(r"^[^`\n]*?(?<![-\w./:{])dmlc-submit (-[^`\n]*)", lines, re.MULTILINE) + re.findall(r"`dmlc-submit (-[^`]*)`", lines):
        try:
            yield shlex.split(found, comments=True)
        except ValueError:  # a command whose quotes end on another line
            yield found.split()


def python_name_exists(name):
    """Whether `warren.NAME` is a module, or defined in the module that NAME begins with."""
    place, parts = SOURCE / "python/src/warren", name.split(".")
    while parts and (place / parts[0]).is_dir():
        place = place / parts.pop(0)
    if not parts:
        return True
    file = place / f"{parts[0]}.py"
    if file.exists():
        parts.pop(0)
    tree = ast.parse(read(file if file.exists() else place / "__init__.py"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    defined |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    # A module with __getattr__ lists the names that it creates on demand as strings.
    defined |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__getattr__" in defined}
    defined |= {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    return not parts or parts[0] in defined


def without_code(text):
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


class Docs(unittest.TestCase):
    def test_tables_of_figures_name_a_commit(self):
        for page in (README, SOURCE / "docs/explanation/speed.md"):
            found = [(before, rows) for before, rows in tables(read(page)) if has_figures(rows)]
            self.assertGreaterEqual(len(found), 1)
            for before, rows in found:
                self.assertRegex(before, COMMIT, f"{page}: no commit before the table that begins with {rows[0]}")

    def test_from_nothing_knows_each_page_that_it_alone_runs(self):
        known = read(SOURCE / "tests/docs/from_nothing")
        pages = [page for page in (README, *SOURCE.glob("docs/*/*.md")) if "<!-- run in a new system" in read(page)]
        self.assertGreater(len(pages), 5)
        for page in pages:
            self.assertIn(f'    "{page.stem}": [', known)

    def test_the_first_screen_says_what_it_is_and_shows_it_run(self):
        screen = "\n".join(read(README).splitlines()[:FIRST_SCREEN])
        for wanted in ("no Spark, no Dask, no Ray", "$ scripts/demo", "pip install", "warren.xgboost.communicator()", "$ dmlc-submit", "train-logloss",
                       "docs/pictures/four_hosts.svg"):
            self.assertIn(wanted, screen)
        self.assertLess(len(read(README).splitlines()), 200)

    def test_the_chart_shows_the_table(self):
        found = training_chart.read(read(training_chart.TABLE))
        self.assertEqual(len(found), 6)
        self.assertEqual(training_chart.draw(found), read(SOURCE / "docs/pictures/training.svg"),
                         "make it anew: python3 docs/pictures/training_chart.py")

    def test_links_lead_to_files_and_headings(self):
        pages = tracked("*.md")
        self.assertGreater(len(pages), 40)
        for page in map(SOURCE.joinpath, pages):
            for link in LINK.findall(without_code(read(page))):
                if "://" in link or link.startswith("mailto:"):
                    continue
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                self.assertTrue(target.exists(), f"{page}: {link}")
                if anchor and target.suffix == ".md":
                    self.assertIn(anchor, anchors(read(target)), f"{page}: {link}")

    def test_every_block_says_whether_it_is_run(self):
        for page in marked.pages(SOURCE):
            text = read(page)
            self.assertEqual(list(marked.indented_blocks(text)), [], f"{page}: code without a fence has no language")
            for block in marked.blocks(text):
                where = f"{page}:{block.line}"
                if block.language in marked.RUNNABLE:
                    self.assertNotEqual(block.kind, "", f"{where}: a comment before it is to say whether it is run: tests/docs/marked.py")
                if block.kind == "not run":
                    self.assertGreater(len(block.rest), 10, f"{where}: why is it not run?")
                if block.kind == "run" and block.language != "python":
                    self.assertIn(block.language, ("console", "sh"), where)
                    self.assertTrue(marked.commands(block), where)


class Reference(unittest.TestCase):
    """Checks that the names, messages and options mentioned in the pages are in the sources."""

    def sources(self, *folders):
        """The text of all source files in the folders, with string literals that span lines joined."""
        files = (path for folder in folders for path in sorted((SOURCE / folder).rglob("*")) if path.suffix in (".cc", ".h", ".py", ".sh"))
        return re.sub(r'"\s*\n\s*f?"', "", "\n".join(map(read, files)))

    def test_messages_that_are_explained_are_said(self):
        said = self.sources("submit", "tracker", "rabit_engine", "wire", "tls", "posix", "cli", "data", "examples", "python/src")
        rows = [rows for _, rows in tables(read(SOURCE / "docs/troubleshooting.md").split("## Other libraries say")[0])]
        messages = [row.split("`")[1] for table in rows for row in table[2:]]
        self.assertGreater(len(messages), 20)
        for message in messages:  # not with assertIn, whose message would contain all sources
            parts = [part.strip() for part in message.split("...") if len(part.strip()) > 8]
            self.assertTrue(parts, message)
            for part in parts:
                self.assertTrue(part in said, f"no source says '{part}', which docs/troubleshooting.md explains")

    def test_python_names_exist(self):
        names = {(page.name, name) for page in documents() for name in re.findall(r"(?<![\w./-])warren\.([a-z_]\w*(?:\.\w+)*)", read(page))}
        self.assertGreater(len(names), 100)
        # Names that are not Python's: the attributes of traces, and the tag of MLflow's runs.
        elsewhere = {name.rstrip(".") for name in re.findall(r'"warren\.([a-z_.]+)', self.sources("submit", "python/src"))}
        for page, name in sorted(names):
            self.assertTrue(name.split(".")[-1] == "md" or python_name_exists(name) or name in elsewhere, f"{page}: warren.{name}")

    def test_options_of_commands_exist(self):
        known, count = options_of_dmlc_submit(), 0
        self.assertGreater(len(known), 70)
        for page in documents():
            for words in commands_of_dmlc_submit(read(page)):
                while words and re.match("--?[a-zA-Z]", words[0]):
                    name, given, _ = words.pop(0).partition("=")
                    # exit-codes.md shows the effect of the misspelled option --num-wokers.
                    self.assertTrue(name in known or name == "--num-wokers", f"{page}: dmlc-submit {name}")
                    count += 1
                    if known.get(name) and not given:
                        words = words[1:]
        self.assertGreater(count, 200)

    def test_what_is_named_elsewhere_exists(self):
        """Checks that the files, environment variables and options mentioned in the pages exist. Options may be those of any program."""
        files = tracked("*.cc", "*.h", "*.py", "*.sh", "*CMakeLists.txt", "*.cmake", "CMakePresets.json", ".ci", "scripts", "bench",
                        ":!bench/results", ":!tests/docs_test.py")
        sources = "\n".join(read(SOURCE / file) for file in files if not file.endswith(".md"))
        variables = set(re.findall(r"\b(?:WARREN|DMLC)_[A-Z_]+\b", sources))
        options = {*options_of_dmlc_submit(), *re.findall(r"(?<![\w-])--[a-z][a-z-]+", sources)}
        folders = "|".join(sorted({name.partition("/")[0] for name in tracked("*/CMakeLists.txt", "docs", "scripts", "packaging", "python")}))
        for page in documents():
            text = read(page)
            unknown = {name for name in re.findall(r"\b(?:WARREN|DMLC)_[A-Z_]+[A-Z]\b", text) if name not in variables}
            unknown |= {name for name in re.findall(r"`(--[a-z][a-z-]+)", without_code(text)) if name not in options}
            if page.name != "extending.md":  # its examples name files that do not exist
                unknown |= {name for name in re.findall(rf"`((?:{folders})/[\w./-]+)`", text) if not (SOURCE / name).exists()}
            self.assertEqual(unknown, set(), page)

    def test_pages_made_from_sources_have_every_function(self):
        made = {name: from_sources.fill_in(read(SOURCE / f"docs/reference/api-{name}.md"), SOURCE) for name in ("c", "cpp", "python")}
        for header in ("warren", "rabit"):
            found = re.findall(r"^(?:WARREN|RABIT)_DLL [^;(]*?(\w+)\(", read(SOURCE / f"rabit_engine/include/{header}/c_api.h"), re.MULTILINE)
            self.assertGreater(len(found), 10)
            for function in found:
                self.assertIn(f"{function}(", made["c"])
        for name in ("Allreduce", "Broadcast", "LoadCheckPoint", "class Communicator", "class Mailbox"):
            self.assertIn(name, made["cpp"])
        for name in ("load_dmatrix(uri: Any", "### ParameterServer", "allreduce_async(self", "class AllReduceSGDEngine"):
            self.assertIn(name, made["python"])
        self.assertNotIn("namespace internal", made["cpp"])

    def test_settings_of_the_engine_are_listed(self):
        page = read(SOURCE / "docs/reference/environment.md")
        found = set(re.findall(r'"((?:DMLC|WARREN|RABIT|rabit)_[A-Za-z_]+)"', read(SOURCE / "rabit_engine/base/settings.cc")))
        self.assertGreater(len(found), 20)
        for name in found:
            if not name.startswith(("rabit_tracker", "rabit_task")):
                self.assertIn(f"`{re.sub('^RABIT_', 'WARREN_', name)}`", page)

    def test_metrics_are_listed(self):
        served = set(re.findall(r'"(warren_[a-z_]+)"', read(SOURCE / "submit/monitor/open_metrics.cc")))
        listed = re.findall(r"^\| `(\w+)` \| (\w+)", read(SOURCE / "docs/reference/metrics.md"), re.MULTILINE)
        suffixes = {"counter": "_total", "info": "_info", "gauge": ""}
        self.assertEqual({name.removesuffix(suffixes[kind]) for name, kind in listed}, served)


class Marked(unittest.TestCase):
    """Tests marked.py: its comparison of a command's output with a page, and its parsing of marked code blocks."""

    def test_a_number_is_an_equal_number_however_it_is_written(self):
        for page, printed in (("[0]\ttrain-rmse:0.00001", "[0] train-rmse:1e-05"), ("1,000 rows", "1000 rows"),
                              ("-0.50", "-0.5"), ("pid ... ended", "pid 12 of vm ended"), ("warren 0...", "warren 0.1.0"),
                              ("at 127.0.0.1:80/?t=...", "at 127.0.0.1:80/?t=77d9f184e4")):
            self.assertTrue(marked.agrees(page, printed), page)
        for page, printed in (("train-rmse:0.5", "valid-rmse:0.5"), ("centres 12.00 and 22.00", "centres 0.00 and 17.00"),
                              ("[0] 2 workers, loss 0.0012", "[0] 2 workers, loss 0.0002"), ("-1 rows", "1 rows"),
                              ("... 0 s", "took 10 s"), ("3 rows", "3.5 rows"), ("20261127082759", "20261127082758"),
                              ("[1,2,3]", "[12,3]"), ("1,2,3", "1,23"), ("loss ...0.5", "loss -0.5")):
            self.assertFalse(marked.agrees(page, printed), page)

    def test_only_numbers_that_a_page_marks_may_differ(self):
        any_time = [marked.Allowance("took 0.8 s")]
        self.assertTrue(marked.agrees("2 workers took 0.8 s", "2 workers took 61.25 s", any_time))
        self.assertTrue(marked.agrees("2 workers took 0.8 s", "2 workers took 900 ms", any_time))
        self.assertFalse(marked.agrees("2 workers took 0.8 s", "2 workers took 900 MB", any_time))
        self.assertFalse(marked.agrees("2 workers took 0.8 s", "3 workers took 0.8 s", any_time))
        self.assertFalse(marked.agrees("0.8 s, took 0.8 s", "0.9 s, took 0.8 s", any_time))
        absolute, relative = [marked.Allowance("loss 0.02", 0.001)], [marked.Allowance("loss 0.02", 0.1, True)]
        self.assertTrue(marked.agrees("loss 0.02", "loss 0.0209", absolute))
        self.assertFalse(marked.agrees("loss 0.02", "loss 0.0212", absolute))
        self.assertTrue(marked.agrees("loss 0.02", "loss 0.0181", relative))
        self.assertFalse(marked.agrees("loss 0.02", "loss 0.0170", relative))

    def test_marks_of_numbers_are_those_of_the_block_behind_them(self):
        marks = "<!-- run -->\n<!-- any number: pid 7; 0.8 s -->\n<!-- within 5 %: loss 0.02 -->\n"
        text = marks + "```console\n$ a\npid 7: loss 0.02 in 0.8 s\n```\n"
        block, = marked.blocks(text)
        self.assertEqual((block.kind, block.allowances), ("run", (marked.Allowance("pid 7"), marked.Allowance("0.8 s"),
                                                                  marked.Allowance("loss 0.02", 0.05, True))))
        for wrong in ("<!-- any number: pid 8 -->", "<!-- any number: pid -->", "<!-- within: loss 0.02 -->", "<!-- within 5 % -->"):
            with self.assertRaisesRegex(ValueError, "line \\d"):
                list(marked.blocks(text.replace("<!-- any number: pid 7; 0.8 s -->", wrong)))

    def test_missing_and_unexpected_lines_are_found(self):
        self.assertIsNone(marked.missing(["a", "...", "z"], ["a", "b", "c", "z"], False))
        self.assertEqual(marked.missing(["a", "b"], ["a"], False), "not printed: b")
        self.assertEqual(marked.missing(["a"], ["a", "b"], False), "not expected: b")
        self.assertIsNone(marked.missing(["[1] x", "[0] y"], ["[0] y", "[1] x"], True))
        self.assertEqual(marked.missing(["x", "y"], ["y", "z"], True), "not printed: x")

    def test_blocks_know_their_marks(self):
        text = "<!-- file a.py -->\n```python\n1\n```\n\n<!-- run, any order, exit 3 -->\n```console\n$ a \\\n  b\nc\n```\n```sh\nx\n```\n"
        first, second, third = marked.blocks(text)
        self.assertEqual((first.kind, first.rest, first.text), ("file", "a.py", "1\n"))
        self.assertEqual((second.kind, second.any_order, second.code), ("run", True, 3))
        self.assertEqual([(one.text, one.expected) for one in marked.commands(second)], [("a \\\n  b", ["c"])])
        self.assertEqual(third.kind, "")
        self.assertEqual(list(marked.indented_blocks("a\n\n    b\n\n- c\n\n    d\n")), [3])


if __name__ == "__main__":
    unittest.main()
