"""What a person comes to the console for: clicks and seconds of each errand, in a real Chromium, at
a desk and with a phone; and how soon an answer's first words are seen.

All services run in this process; the model answers at once, so seconds are the console's own. With
`--before COMMIT` the same errands are done as that commit's console let one, by its own services.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from bench.numbers import percentile, report
from tests.support import chromium, console_stage, errands

TRIES: Final = 50
_ROOT: Final = Path(__file__).parents[1]
_LENT: Final = ("chromium.py", "errands.py", "errands_before.py")
"""What a tree of then gets of today's `tests/support`."""


async def measure(home: Path) -> None:
    """Each errand at both widths; then the first words of many answers."""
    with pytest.MonkeyPatch.context() as patch:
        async with (
            console_stage.staged(home, patch) as stage,
            chromium.opened(home / "profile") as tab,
        ):
            await _measure(stage, tab)


async def _measure(stage: console_stage.Stage, tab: chromium.Tab) -> None:
    await errands.Hand(tab, stage, "desk").sign_in()
    for width in errands.WIDTHS:
        for one in await errands.run_all(tab, stage, width):
            facts = {"errand": one.errand, "width": one.width, "fields": one.fields}
            facts |= {"seconds": round(one.seconds, 2), "failed": one.failed}
            aim = f"<= {errands.CLICKS_MAX}"
            report("errand_clicks", float(one.clicks), "clicks", aim=aim, **facts)
    await tab.look()
    found_ms = await errands.first_words_ms(tab, stage, TRIES)
    report("first_words_p50_ms", percentile(found_ms, 50), "ms", aim="<= 200")
    report("first_words_p99_ms", percentile(found_ms, 99), "ms", aim="<= 200")


async def measure_before(home: Path, commit: str) -> None:
    """Each errand at both widths, in a tree of a commit, by a process of its own."""
    tree = home / "tree"
    await _run("git", "worktree", "add", "--quiet", "--detach", str(tree), commit, folder=_ROOT)
    try:
        for name in _LENT:
            shutil.copy(_ROOT / "tests" / "support" / name, tree / "tests" / "support" / name)
        said = await _run(sys.executable, "-m", "tests.support.errands_before", folder=tree)
    finally:
        await _run("git", "worktree", "remove", "--force", str(tree), folder=_ROOT)
    for line in said.splitlines():
        if line.startswith('{"errand"'):
            found = json.loads(line)
            clicks, seconds = found.pop("clicks"), round(found.pop("seconds"), 2)
            report("errand_clicks", clicks, "clicks", commit=commit, seconds=seconds, **found)


async def _run(*command: str, folder: Path) -> str:
    """Run a command in a folder whose own modules are found first; return what it printed.

    Raises: RuntimeError, it failed.
    """
    paths = os.pathsep.join((str(folder / "shared"), str(folder)))
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return said.decode()
