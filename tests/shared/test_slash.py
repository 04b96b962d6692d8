"""Slash commands: one table, and both that read it obey all that it has for them."""

from __future__ import annotations

import inspect
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.console.pages.sessions.orders import OBEYS
from tests.support.examples import up_to
from tests.support.sources import ROOT
from vigil.cli.chat.conversation import Conversation
from vigil.cli.chat.orders import Orders
from vigil.cli.chat.screen import JsonScreen
from vigil.sdk.client import Client
from vigil.subjects import SessionKey
from vigil.words import slash

DOCS: Final = ROOT / "docs/console.md"


def test_each_command_is_obeyed_where_it_is_known() -> None:
    client, key, screen = Client("http://127.0.0.1:9", "x"), SessionKey("a", "b", "c"), JsonScreen()
    orders = Orders(client, key, screen, Conversation(client, str(key), screen))
    for name, command in slash.COMMANDS.items():
        assert (name in orders.obeys) == command.is_at_terminal
        assert (name in OBEYS) == command.is_in_console
        assert inspect.cleandoc(command.meaning) == command.meaning
        assert f"`/{name}" in DOCS.read_text("utf-8"), f"{name} is in no document"
    assert set(orders.obeys) | set(OBEYS) == set(slash.COMMANDS)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/remnd in an hour", "Did you mean /remind?"),
        ("/Stpo", "Did you mean /stop?"),
        ("/frobnicate", "/help shows what there is."),
    ],
)
def test_what_is_unknown_is_told_and_not_said(line: str, told: str) -> None:
    found = slash.read(line, is_terminal=True)
    assert isinstance(found, slash.UnknownSlash)
    assert told in found.told


def test_what_one_place_alone_can_do_is_told_in_the_other() -> None:
    found = slash.read("/attach a.png", is_terminal=False)
    assert isinstance(found, slash.UnknownSlash)
    assert "`vigil chat`" in found.told


@up_to(200)
@given(st.text(max_size=30), st.booleans())
def test_words_are_said_as_they_are(text: str, is_terminal: bool) -> None:
    """What doesn't begin with a slash, paths, and what begins with two of them."""
    words = text.strip()
    if not words.startswith("/"):
        assert slash.read(text, is_terminal=is_terminal) == slash.PlainWords(words)
    escaped = slash.read("//" + text, is_terminal=is_terminal)
    assert escaped == slash.PlainWords(("/" + text).rstrip())
    path = slash.read(f"/etc/{text}", is_terminal=is_terminal)
    assert path == slash.PlainWords(f"/etc/{text}".strip())
