"""Channels that the configuration has, and delivery doesn't use yet: people write through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.support.channels import orders
from tests.support.delivery import AT, Conversation, conversation, until
from tests.support.stack import running_stack
from tests.support.telegram_server import BOT, TOKEN
from vigil.contracts import Cause, UserMessage, UserMessagePayload, decode_turn, encode
from vigil.edits import toml_sections
from vigil.settings.live import followed

BROKEN: Final = {"kind": "ntfy", "user": "ann", "topic": "t", "url": "https://ntfy.example/a/path"}
ASKING: Final = "To decide, say: accept a7k2, or: reject a7k2"


@pytest.mark.parametrize(
    ("name", "section", "came_by", "text"),
    [
        ("tele", {"kind": "telegram", "bot": BOT, "token": TOKEN}, "tele", "Yes, at nine."),
        ("bell", {"kind": "push"}, "", ASKING),
    ],
)
async def test_what_answers_and_what_is_announced_is_ordered_of_a_channel_that_comes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    section: dict[str, Any],
    came_by: str,
    text: str,
) -> None:
    """Another section that can't be used keeps delivery from taking in one that people write
    through already: what they are answered waits until it's mended."""
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    person = {"channel": name}
    async with running_stack(tmp_path, ("delivery",), person=person) as stack:
        first = stack.contexts["delivery"]
        toml_sections.add(tmp_path / "vigil.toml", "channels", name, section)
        toml_sections.add(tmp_path / "vigil.toml", "channels", "phone", BROKEN)

        async def is_refused() -> bool:
            now = stack.contexts["delivery"]
            return now is not first and "channels.phone.url" in str(now.health().warnings)

        await until(is_refused, what="a warning")
        talk = conversation(await stack.bus("admin"))
        await said_by(talk, came_by)
        effect = await answered(talk, text)

        async def is_ordered() -> bool:
            return bool(await orders(talk.bus, talk.key, effect))

        await until(is_ordered, what="an order")
        (order,) = await orders(talk.bus, talk.key, effect)
        assert order.channel == name


async def said_by(talk: Conversation, channel: str) -> None:
    """Store what a person wrote through a channel."""
    payload = UserMessagePayload(text="When?", channel=channel)
    message = UserMessage(id="u1", session_key=str(talk.key), created_at=AT, payload=payload)
    talk.fence = (await talk.bus.publish(talk.key.in_user, encode(message))).seq


async def answered(talk: Conversation, text: str) -> str:
    """Commit the turn that answers it; return the id of what it says."""
    send = talk.send()
    send = msgspec.structs.replace(send, payload=msgspec.structs.replace(send.payload, text=text))
    cause = Cause(id="u1", seq=talk.fence, type="user_message")
    turn = msgspec.structs.replace(decode_turn(talk.encoded(send)), event=cause)
    await talk.bus.publish(talk.key.turn_for("s"), encode(turn))
    return send.id
