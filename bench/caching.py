"""What a conversation's first request takes, and how much of the later ones a provider can read
from its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from bench.numbers import report
from tests.support.long_talk import long_talk, long_talk_with_openai
from tests.support.prompt_cache import cached_share

TURNS: Final = 20


async def measure(home: Path) -> None:
    """Report the share of the last turn's input, of all turns' and of the second one's."""
    for provider, talk in (
        ("anthropic", long_talk(_made(home, "anthropic"), lambda: 0.0)),
        ("openai", long_talk_with_openai(_made(home, "openai"), "gpt-6-luna")),
    ):
        async with talk as long:
            turns = [await long.turn(number) for number in range(1, TURNS + 1)]
            first = len(msgspec.json.encode(long.api.requests[0].body))
        shares = [round(100 * cached_share(calls), 1) for calls in turns]
        whole = round(100 * cached_share([used for calls in turns for used in calls]), 1)
        report("first_request_bytes", first, "bytes", aim="<= 14,000", provider=provider)
        report("cached_share_20_pct", shares[-1], "% of the input tokens", aim=">= 85",
               provider=provider, all_turns=whole, turn_2=shares[1])  # fmt: skip


def _made(home: Path, name: str) -> Path:
    folder = home / name
    folder.mkdir()
    return folder
