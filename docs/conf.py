"""Sphinx's configuration of the site, which scripts/docs builds. The sources are the pages at their places in the tree, so that links
between them lead to the same files on a site and in a clone."""

import pathlib
import posixpath
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "docs"))
import from_sources  # noqa: E402

project = "Warren"
author = "the authors of Warren"
copyright = "the authors of Warren"  # pylint: disable=redefined-builtin
version = release = re.search(r"^project\(warren VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/**", "bench/**", "examples/**", "packaging/README.md", "python/README.md", "*.md"]
exclude_patterns = ["build", "build-*", ".git", "docs/requirements.txt"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # code blocks may be parts of programs

html_theme = "furo"
html_title = f"Warren {version}"
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)")


def _lead_somewhere(app, docname, source):
    """Removes links to code and to folders, which a site does not have; a link to a folder with a README leads to the README. Inserts the
    reference of headers and modules into pages that ask for it."""
    del app
    here = posixpath.dirname(docname)

    def change(match):
        words, target, anchor = match.groups()
        path = posixpath.normpath(posixpath.join(here, target))
        if (SOURCE / path / "README.md").exists():
            return f"[{words}]({posixpath.join(target, 'README.md')})"
        return match[0] if path.endswith(".md") else words
    source[0] = from_sources.fill_in(LINK.sub(change, source[0]), SOURCE)


def _start_page(app, error):
    """Makes the site's root redirect to the front page."""
    if error is None:
        (pathlib.Path(app.outdir) / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><title>Warren</title><meta http-equiv="refresh" content="0; url=docs/index.html">'
            '<a href="docs/index.html">Warren</a>\n', encoding="utf-8")


def setup(app):
    app.connect("source-read", _lead_somewhere)
    app.connect("build-finished", _start_page)
