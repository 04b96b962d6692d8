#!/usr/bin/env bash
# Rich's Markdown leaves words of a text out, or puts them elsewhere, without a mark.
#
# `rich.markdown.Markdown` draws what a program or a model wrote for a person at a terminal. One would expect that all words
# of a text are shown, in their order, whatever marks they carry; a terminal has no use for HTML, so that could be shown as text.
#
# Seen (2026-11-28, rich 15.0.0 with markdown-it-py 4.3.0): what looks like a tag isn't drawn, so a `List<String>` outside of
# code is a `List`, while `Map<K, V>` stays; a paragraph that begins with a tag on a line of its own isn't drawn at all, its words
# included; what is quoted 25 levels deep isn't, either; a picture within a sentence is drawn before the sentence.
# Whoever shows answers with it should parse the text with HTML off and hand the tokens over (`Markdown("").parsed = …`).
set -euo pipefail
version=15.0.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "rich==$version" "markdown-it-py==4.3.0"
cat > run.py <<'P'
import io
import sys
from importlib.metadata import version

from rich.console import Console
from rich.markdown import Markdown

print("rich", version("rich"), "markdown-it-py", version("markdown-it-py"))
CASES = {
    "a type with a parameter": ("Use a List<String> or a Map<K, V> here.", "Use a List or a Map<K, V> here."),
    "a paragraph in a tag": ("<div>\nthe important part\n</div>\n\nafter", "after"),
    "25 quotes": ("> " * 25 + "so deep", ""),
    "a picture in a sentence": ("before ![cat](https://a.example/c.png) after", "🌆 cat before after"),
}
is_same = True
for name, (text, seen) in CASES.items():
    console = Console(file=io.StringIO(), width=60)
    console.print(Markdown(text))
    shown = " ".join(console.file.getvalue().split())
    print(f"{name}: {text[:50]!r} is drawn as {shown!r}")
    is_same = is_same and shown == seen
sys.exit(0 if is_same else "it behaves otherwise by now")
P
venv/bin/python run.py
