"""What a person comes to the console for: clicks and seconds of each errand, in a real Chromium, at
a desk and with a phone; and how soon an answer's first words are seen.

All services run in this process; the model answers at once, so seconds are the console's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from bench.numbers import percentile, report
from tests.support import chromium, console_stage, errands

TRIES: Final = 50


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
