#!/usr/bin/env bash
# mdit-py-plugins' texmath with the delimiters "brackets" leaves out what stands behind a formula of
# its own lines: of "\[x\] and more words" only the formula becomes a token, and of the rendered page
# the words are gone. One would expect them as a paragraph, as dollarmath keeps "$$x$$ and more words".
# Seen on 2026-11-28 with mdit-py-plugins 0.7.0 and markdown-it-py 4.3.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mdit-py-plugins==0.7.0 markdown-it-py==4.3.0
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin

print("mdit-py-plugins", version("mdit-py-plugins"), "markdown-it-py", version("markdown-it-py"))
brackets = MarkdownIt().use(texmath_plugin, delimiters="brackets").render(r"\[x\] and more words")
dollars = MarkdownIt().use(dollarmath_plugin, double_inline=True).render("$$x$$ and more words")
print("brackets:", repr(brackets))
print("dollars: ", repr(dollars))
assert "and more words" in dollars
assert "and more words" not in brackets, "it is mended"
PYTHON
