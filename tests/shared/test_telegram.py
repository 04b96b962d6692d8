"""What is read of what the Bot API tells, and what is sent: pure decisions, attacked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import anything_of, up_to
from tests.support.telegram_server import shown
from vigil.channels.answers import pause_s
from vigil.channels.chats.parts import units
from vigil.channels.telegram import happenings
from vigil.channels.telegram.composition import composed, html_of
from vigil.channels.telegram.section import TelegramBot
from vigil.channels.telegram.wire import GetRawUpdates, meant
from vigil.contracts import Said
from vigil.errors import InvalidInput
from vigil.imports.aiogram import TelegramRetryAfter

BOT: Final = "@vigil_bot"
NAMES: Final = st.sampled_from(
    ["update_id", "message", "edited_message", "callback_query", "from", "id", "is_bot", "chat",
     "type", "private", "text", "data", "message_id", "accept:" + "0" * 32, "reply_to_message"]
)  # fmt: skip
ANYTHING: Final = anything_of(NAMES)
MARKED: Final = st.lists(
    st.sampled_from(
        ["a", " ", "\n", "\n\n", "*", "**", "~~", "`", "```\n", "- ", "1. ", "> ", "# ", "[x](",
         ")", "https://a.example/?b=1&c=2", "<b>", "</i>", "&", "&lt;", '"', "|", "---\n", "![",
         "🙂"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@up_to(300)
@given(update=ANYTHING)
def test_whatever_the_api_tells_is_read_or_left_out(update: Any) -> None:
    found = happenings.post_of(update, BOT)
    assert found is None or (found.author and found.room)
    assert isinstance(happenings.update_id_of(update), int)


@up_to(300)
@given(text=MARKED)
def test_whatever_is_said_has_tags_that_telegram_reads(text: str) -> None:
    page = html_of(text)
    if page:
        assert len(shown(page)) <= 2 * len(text) + 10


def test_a_formula_is_sent_as_it_was_written() -> None:
    assert html_of(r"**so** \(a*b*c\) < $x*y$") == r"<b>so</b> \(a*b*c\) &lt; $x*y$"


def test_long_words_are_parts_that_telegram_takes() -> None:
    said = Said(
        id="e1",
        session_key="ann:vigil:main",
        text="🙂" * 5_000,
        at=datetime(2026, 11, 28, tzinfo=UTC),
        caused_by="",
        turn_seq=1,
        is_tainted=True,
    )
    parts, _ = composed(said, "")
    assert [units(one.text) <= 4096 for one in parts] == [True] * len(parts) == [True] * 3
    assert parts[-1].text.endswith("look twice before you follow a link.)")


def test_half_a_character_is_read_as_none_and_any_pause_can_be_waited_for() -> None:
    """What can't be stored would be told by the server again and again, and nothing behind it."""
    told = {"message_id": 5, "chat": {"id": 7, "type": "private"}, "text": "a\ud800b"}
    found = happenings.post_of({"message": told | {"from": {"id": 7, "is_bot": False}}}, BOT)
    assert found is not None
    assert found.text == "a\ufffdb"
    for asked in (-(10**400), 0, 7, 10**400):
        refusal = TelegramRetryAfter(GetRawUpdates(), "later", retry_after=asked)
        assert 0 <= pause_s(0.5, meant(refusal).wait_s) <= 3600


def test_a_button_is_pressed_by_who_it_is_for_and_says_no_more_than_it_does() -> None:
    on = {"message_id": 5, "chat": {"id": 7, "type": "private"}}
    press = {"id": "c", "from": {"id": 7, "is_bot": False}, "message": on}

    def pressed(**changes: Any) -> happenings.TelegramPost | None:
        return happenings.post_of({"callback_query": press | changes}, BOT)

    request = "0a" * 16
    found = pressed(data=f"accept:{request}")
    assert found is not None
    assert (found.text, found.is_direct) == (f"accept {request}", True)
    for data in ("accept:all", f"accept:{request} and more", f"edit:{request}", "", None):
        assert pressed(data=data) is None
    other = pressed(data=f"accept:{request}", **{"from": {"id": 8, "is_bot": False}})
    assert other is not None
    assert not other.is_direct


@pytest.mark.parametrize(
    ("field", "value"),
    [("bot", "vigil"), ("token", "x"), ("is_idempotent", True), ("api_url", "ftp://a.example")],
)
def test_a_section_that_cannot_work_is_refused_naming_the_field(field: str, value: Any) -> None:
    wanted = {"bot": BOT, "token": "4711:secret"}
    section = TelegramBot(**(wanted | {field: value}))
    found = section.examine(Path("/nowhere"))
    assert found.state == "fail"
    assert field in found.found
    assert "4711" not in f"{section!r} {found}"
    with pytest.raises(InvalidInput, match="address"):
        section.check_may_pair("ann")
