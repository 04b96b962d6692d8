"""Pictures of every page of the console, for docs/pictures: `make pictures` (ARGS: some by name).

As an admin who has something on every page sees it, at a desk and with a phone, by day and night.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

import pytest

from tests.support import chromium, console_stage
from tests.support.chromium import Tab
from tests.support.console import link_of, pages
from tests.support.console_stage import Stage
from vigil.observe import logs

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "pictures"
LIST: Final = ROOT / "docs" / "pictures.md"
SHAPES: Final = (("desk", 1280, 0.6), ("phone", 390, 0.9))
LIGHTS: Final = (("light", False), ("dark", True))
_NAMELESS: Final = re.compile(r"[0-9a-f]{32}|ann:vigil:plants|\d+$")
_HEAD: Final = """# Pictures of the console

Every page, at a desk and with a phone, by day and by night; `make pictures` makes them anew, and
this page. What can be done where is in [console.md](console.md).
"""


def name_of(path: str) -> str:
    """Return what a page's pictures are called.

    >>> name_of("/tasks/" + "a" * 32), name_of(""), name_of("/why?id=1")
    ('tasks-one', 'today', 'why-one')
    """
    place, _, query = path.partition("?")
    name = _NAMELESS.sub("one", place).strip("/").replace("/", "-") or "today"
    return name + {"id": "-one", "add": "-add"}.get(query.partition("=")[0], "")


async def take(tab: Tab, stage: Stage, wanted: Collection[str]) -> list[str]:
    """Write the pictures of all pages, or of those that are wanted; return all pages' names."""
    names = []
    for path in (*pages(), *stage.below()):
        name = name_of(path)
        names.append(name)
        if wanted and name not in wanted:
            continue
        for shape, width, scale in SHAPES:
            await tab.look(width=width)
            await tab.go(f"http://127.0.0.1:{stage.world.gate.port}/console{path}")
            for light, is_dark in LIGHTS:
                await tab.look(is_dark=is_dark, width=width)
                file = FOLDER / f"{name}-{shape}-{light}.webp"
                await tab.picture(file, scale=scale, height_max=900)
    return names


def listed(names: list[str]) -> str:
    """Return the page that shows them."""
    rows = []
    for name in names:
        shown = [
            f'<img src="pictures/{name}-{shape}-{light}.webp" height="260" '
            f'alt="{name}, {shape}, {light}">'
            for shape, _, _ in SHAPES
            for light, _ in LIGHTS
        ]
        rows.append(f"\n## {name.replace('-', ' ').capitalize()}\n\n" + "\n".join(shown) + "\n")
    return _HEAD + "".join(rows)


async def main() -> None:
    logs.configure(level=40)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        home = Path(folder)
        async with (
            console_stage.staged(home, patch) as stage,
            chromium.opened(home / "profile") as tab,
        ):
            gate = stage.world.gate
            link = await link_of(gate, await gate.token("ann", is_admin=True))
            await tab.go(f"http://127.0.0.1:{gate.port}{link}")
            await tab.press("form button")
            LIST.write_text(listed(await take(tab, stage, sys.argv[1:])))
    size = sum(one.stat().st_size for one in FOLDER.glob("*.webp"))
    sys.stdout.write(f"{size // 1000} kB in {FOLDER}\n")


if __name__ == "__main__":
    asyncio.run(main())
