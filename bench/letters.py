"""What the person's own words cost a call, and what closed letters save; no service runs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.numbers import percentile, report
from services.cortex.core.context.letters import ALL, Opening, view
from services.cortex.core.context.window import tokens_of_rows
from services.cortex.core.draft.chunk import Chunk
from vigil.contracts import Row, TextBlock, ToolResultBlock, ToolUseBlock
from vigil.contracts.tools import Aim
from vigil.words.aims import parts
from vigil.words.contacts import book_of_contacts
from vigil.words.own import OwnWords
from vigil.words.rule import judge

CALLS: Final = 2_000
CONTACTS: Final = 200
TURNS: Final = 20
PAGES: Final = 10
PAGE: Final = "The port of Basel is closed to ships until the water falls below its mark. " * 100
AT: Final = datetime(2026, 11, 28, 7, tzinfo=UTC)
SAID: Final = (
    "Thanks. Read the page about the port again, and send a summary of what it says on ships, in "
    "two or three sentences, to ben@example.org; tell him that I'm back on Monday."
)


async def measure(_home: Path) -> None:
    """Report a judgement's time, and the tokens of a thread's history at its 20th turn."""
    _judge()
    chunks = [chunk for turn in range(1, TURNS + 1) for chunk in _exchange(turn)]
    last = 2 * TURNS - 1
    opened, closed = (
        sum(tokens_of_rows(chunk.rows) for chunk in view(chunks, opening))
        for opening in (ALL, Opening(turn=last, files=last))
    )
    report("letters_20_tokens", closed, "tokens of history", open=opened,
           saved_pct=round(100 * (1 - closed / opened), 1))  # fmt: skip


def _judge() -> None:
    aims: dict[str, Aim] = {"to": "who", "subject": "content", "body": "content"}
    schema = {"properties": {name: {} for name in aims}}
    call = {"to": ["ben@example.org"], "subject": "The port", "body": PAGE[:1_000]}
    book = book_of_contacts(
        tuple(f"Person{n} Family{n} <p{n}@example.org>" for n in range(CONTACTS))
    )
    took_us = []
    for _ in range(CALLS):
        begun_ns = time.perf_counter_ns()
        found = judge(parts(call, aims, schema), OwnWords([SAID]), book)
        took_us.append((time.perf_counter_ns() - begun_ns) / 1000)
        assert found.may_run
    report("own_words_us", percentile(took_us, 50), "us", p99=percentile(took_us, 99))


def _exchange(turn: int) -> list[Chunk]:
    """An exchange of two turns; the first ten read a page."""
    asked = _row("user", "person", TextBlock(text=SAID))
    if turn > PAGES:
        return [_chunk(turn, 1, asked, _row("assistant", "agent", TextBlock(text="Done.")))]
    use = ToolUseBlock(id=f"c{turn}", name="http_get", input={"url": "https://example.org/port"})
    result = ToolResultBlock(tool_use_id=use.id, content=PAGE)
    answer = _row("assistant", "agent", TextBlock(text=PAGE[:400]))
    return [
        _chunk(turn, 0, asked, _row("assistant", "agent", use)),
        _chunk(turn, 1, _row("user", "tool", result), answer, is_swayed=True),
    ]


def _chunk(turn: int, step: int, *rows: Row, is_swayed: bool = False) -> Chunk:
    ordinal = 2 * turn - 1 + step
    return Chunk(
        seq=ordinal, ordinal=ordinal, rows=rows, tokens=tokens_of_rows(rows), is_tainted=is_swayed,
        is_swayed=is_swayed,
    )  # fmt: skip


def _row(role: str, source: str, *blocks: TextBlock | ToolUseBlock | ToolResultBlock) -> Row:
    return Row(role=role, source=source, blocks=blocks, at=AT)  # type: ignore[arg-type]
