"""Lays the documentation out as MkDocs wants it, and has it made into a site: `make docs`.

The pages are the files of docs as they are read on a forge, with README.md as the first. What they
lead to beside them (code, records) isn't part of the site: there it's named, and no link. A link
that leads nowhere, or to a heading that isn't there, ends it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
BESIDE: Final = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages that aren't in docs."""
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_CODE: Final = re.compile(
    r"(^```.*?^```|(?<=\n\n)(?:(?: {4}|\t)[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page of the site: its path there, and its text."""
    docs = ROOT / "docs"
    for file in sorted(docs.rglob("*.md")):
        path = file.relative_to(docs).as_posix()
        where = "adr/index.md" if path == "adr/README.md" else path
        yield where, moved(file.read_text("utf-8"), f"docs/{path}")
    yield "index.md", moved((ROOT / "README.md").read_text("utf-8"), "README.md")
    for name in BESIDE:
        yield name, moved((ROOT / name).read_text("utf-8"), name)


def moved(text: str, path: str) -> str:
    """Return a page with its links as they are in the site.

    Args:
        path: of the file, from the root.
    """
    parts = _CODE.split(text)
    return "".join(
        part if number % 2 else _LINK.sub(lambda link: _link(link, path), part)
        for number, part in enumerate(parts)
    )


def _link(link: re.Match[str], path: str) -> str:
    mark, words, target = link.groups()
    words = _LINK.sub(lambda inner: _link(inner, path), words)
    where, hash_, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not where:
        return f"{mark}[{words}]({target})"
    there = (ROOT / path).parent.joinpath(where).resolve().relative_to(ROOT).as_posix()
    found = placed(there)
    if found is None and not (ROOT / there).exists():
        return link[0]  # it leads nowhere, which MkDocs tells
    if found is None:
        return words if words.startswith("`") else f"{words} (`{there}`)"
    up = "../" * (placed(path, is_page=True) or "").count("/")
    return f"{mark}[{words}]({up}{found}{hash_}{anchor})"


def placed(path: str, *, is_page: bool = False) -> str | None:
    """Return where a file of the tree is in the site; None: nowhere.

    >>> placed("docs/memory.md"), placed("README.md"), placed("docs/adr"), placed("Makefile")
    ('memory.md', 'index.md', 'adr/index.md', None)
    """
    if path == "README.md":
        return "index.md"
    if path in BESIDE:
        return path
    inside = path.removeprefix("docs/")
    if inside in ("adr", "adr/README.md"):
        return "adr/index.md"
    is_there = inside != path and (is_page or (ROOT / path).is_file())
    return inside if is_there else None


def lay_out(folder: Path) -> None:
    """Write all that MkDocs needs to a folder."""
    site = folder / "docs"
    for path, text in pages():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, "utf-8")
    shutil.copytree(ROOT / "docs" / "pictures", site / "pictures")
    for file in (ROOT / "docs").glob("*.json"):
        shutil.copyfile(file, site / file.name)
    text = (ROOT / "docs" / "site.yml").read_text("utf-8")
    (folder / "mkdocs.yml").write_text(_with_folders(text, site), "utf-8")


def _with_folders(text: str, site: Path) -> str:
    """Return the configuration with the pages of a folder where it names the folder."""

    def listed(match: re.Match[str]) -> str:
        indent, title, folder = match.groups()
        names = sorted(one.name for one in (site / folder).glob("*.md"))
        names.sort(key=lambda one: one != "index.md")
        lines = "".join(f"\n{indent}    - {folder}{one}" for one in names)
        return f"{indent}- {title}:{lines}"

    return re.sub(r"^( +)- (\w+): (\S+/)$", listed, text, flags=re.MULTILINE)


def outside(site: Path) -> dict[str, set[str]]:
    """Return what a browser would fetch from elsewhere, by page."""
    pattern = re.compile(
        r"<(?:script|img|link|source|iframe)\b[^>]*?(?:src|href)=[\"']?(https?://[^\"'\s>]+)"
    )
    found: dict[str, set[str]] = {}
    for file in site.rglob("*.html"):
        text = re.sub(r"<link[^>]*rel=.?canonical[^>]*>", "", file.read_text("utf-8"))
        if addresses := set(pattern.findall(text)):
            found[file.relative_to(site).as_posix()] = addresses
    return found


def main(mkdocs: str, target: str) -> None:
    """Make the site. Exits with MkDocs' own code where it isn't whole."""
    with tempfile.TemporaryDirectory(prefix="vigil-docs-") as folder:
        lay_out(Path(folder))
        made = Path(target).absolute()
        # Not `--quiet`: with it, `--strict` counts no warning, and a broken link passes.
        command: list[Any] = [Path(mkdocs).absolute(), "build", "--strict", "--site-dir", made]
        code = subprocess.call(command, cwd=folder, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
        if code:
            sys.exit(code)
    if fetched := outside(made):
        sys.exit(f"pages fetch from elsewhere: {fetched}")
    print(f"{made}/index.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
