"""Pictures and files that people send in chat networks, and what somebody may try with them.

Telegram's are sent in `test_telegram_both_ways.py`: its library takes seconds to be imported.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.delivery.test_network_floods import until_told
from tests.support.attacks_in_rooms import Heard
from tests.support.discord_server import DiscordServer
from tests.support.examples import up_to
from tests.support.files_in_rooms import LIMITS, check_files
from tests.support.pictures import png
from tests.support.sent_files import another_place
from tests.support.slack_server import SlackServer
from tests.support.stack import running_stack
from vigil.attachments.examine import checked_name
from vigil.attachments.names import file_name
from vigil.channels.chats import files
from vigil.channels.chats.post import Post, PostFile
from vigil.clock import SystemClock
from vigil.contracts import Attachment

NETWORKS: Final = (("slack", SlackServer), ("discord", DiscordServer))


async def test_a_file_is_taken_for_what_it_is_and_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5, S9: by its bytes and not by its claims, from the network alone, of a person alone, and
    no more of it than there is room for."""
    monkeypatch.setattr(files, "PAUSES_S", (0.0, 0.0))
    servers = {name: of() for name, of in NETWORKS}
    async with contextlib.AsyncExitStack() as running:
        other, caught = await running.enter_async_context(another_place())
        for server in servers.values():
            await running.enter_async_context(server.running())
        channels = {name: server.section() for name, server in servers.items()}
        stack = await running.enter_async_context(
            running_stack(tmp_path, ("gateway",), SystemClock(), channels=channels, gateway=LIMITS)
        )
        bus = await stack.bus("admin")
        for name, server in servers.items():
            await until_told(stack, name, lambda facts: facts["state"] == "listening")
            await check_files(bus, name, name, server, other)
        assert caught == []


@up_to(300)
@given(name=st.text(max_size=200))
def test_whatever_a_file_is_called_it_gets_a_name_that_a_file_may_have(name: str) -> None:
    assert checked_name(file_name(name))


async def test_of_more_files_than_a_message_may_have_the_first_are_taken() -> None:
    """However many there are: none of the others is fetched, and it's said in few words."""
    sent = tuple(PostFile(kind="an image", place=f"{number}") for number in range(500))
    post = Post(id="1", author="a", room="r", text="", is_direct=True, files=sent)
    fetched: list[str] = []

    async def fetch(file: PostFile, _: int) -> bytes:
        fetched.append(file.place)
        return png(1, int(file.place) % 8 + 1)

    class Roomy(Heard):
        async def check_file(self, user: str, file: Attachment) -> None:
            """There is room for any."""

    found = await files.taken(post, "ann", Roomy(), fetch)
    assert fetched == [f"{number}" for number in range(files.FILES_MAX)]
    assert len(found.files) == 8, "what comes twice is one"
    assert found.refused == ("the other 490, since at most 10 are taken at once",)
