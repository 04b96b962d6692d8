"""What of a cycle's report becomes a memory (SPEC C-7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from services.cortex.core.cycles.grounds import found_in, grounded, names, shown
from vigil.contracts import Row, TaskBlock, ToolResultBlock, ToolUseBlock

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
SEEN = {
    "ci__list": "main: build 4711 failed at 01:10 on Monday\nsee https://ci.example.org/b/4711",
    "research": "Die Fähre Marigold fährt. \u5929\u6c17\u4e88\u5831\u306f\u6674\u308c\u3067\u3059",
}  # fmt: skip


def row(role: Any, *blocks: Any) -> Row:
    return Row(role=role, source="tool", at=AT, blocks=blocks)


@pytest.mark.parametrize(
    "nonsense",
    [
        "This is a new day, and I'm ready for it.",
        "I'm here. I'll keep watching!",
        "Monday, 2026-11-16 09:00 UTC was calm",
        "Everything is fine.",
        "Nothing new since January",
        "",
    ],
)
def test_what_names_nothing_is_no_memory(nonsense: str) -> None:
    """It was kept at 0.55 and recalled into conversations about other things."""
    assert not names(nonsense)
    assert grounded([nonsense], SEEN) == ()


@pytest.mark.parametrize(
    ("point", "tools"),
    [
        ("Build 4711 failed", ("ci__list",)),
        ("The build has a page: https://ci.example.org/b/4711.", ("ci__list",)),
        ("The ferry (Marigold) runs again", ("research",)),
        ("Build 4711 waits for the Marigold", ("ci__list", "research")),
        ("\u660e\u65e5\u306e\u5929\u6c17\u4e88\u5831\u306f\u6674\u308c", ("research",)),
        ("Build 471 failed", ()),
        ("Build 47110 failed", ()),
        ("The Daisy runs again", ()),
        ("It's about Mari", ()),
    ],
)
def test_what_names_what_was_shown_is_one_with_where_it_is_from(
    point: str, tools: tuple[str, ...]
) -> None:
    assert found_in(point, SEEN) == tools
    expected = (f"{point} (from {', '.join(tools)})",) if tools else ()
    assert grounded([point], SEEN) == expected


def test_own_words_that_come_back_are_no_ground() -> None:
    """From memory, the board, a branch of itself; nor are errors. Whom it waited for is one."""
    uses = [
        ToolUseBlock(id=name, name=name, input={})
        for name in ("list_memory", "task_create", "branch", "research", "http_get", "shell")
    ]
    results = [
        ToolResultBlock(tool_use_id=use.id, content=f"about Marigold, by {use.name}")
        for use in uses
    ]
    failed = ToolResultBlock(tool_use_id="shell", content="no Marigold", is_error=True)
    done = TaskBlock(call_id="c", tool="spawn_worker", title="t", content="Marigold sails")
    rows = [row("assistant", *uses), row("user", *results[:-1], failed), row("user", done)]
    assert shown(rows) == {
        "research": "about Marigold, by research", "http_get": "about Marigold, by http_get",
        "spawn_worker": "Marigold sails",
    }  # fmt: skip
