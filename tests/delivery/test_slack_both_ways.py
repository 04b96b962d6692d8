"""Slack as a channel, against an API of our own, through all services (SPEC D-1 to D-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.chat_network import as_usual, cut, in_trouble, too_many
from tests.support.network_world import (
    Step,
    check_revoked,
    code_for,
    request_a_command,
    running_network_world,
    try_all,
    until_rejected,
)
from tests.support.on_loopback import half, slow
from tests.support.slack_server import OWN, SlackServer
from tests.support.world import World
from vigil.attachments.forwarded import SEEN
from vigil.channels.chats import posts, remarks
from vigil.channels.chats.parts import PARTS_MAX
from vigil.channels.slack import wire

CHANNEL: Final = "work"
ANN: Final = "U0ANN"
MAL: Final = "U0MAL"
HERS: Final = "D0ANN"
GROUP: Final = "C0GROUP"


async def test_an_app_hears_whom_a_code_paired_and_each_try_ends_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, X-4, L-11, D-2, D-3: pairing, threads, buttons, and each way in which a try may end."""
    server = SlackServer()
    async with running_network_world(
        tmp_path, monkeypatch, server, CHANNEL, has_hands=True
    ) as world:
        code = await code_for(world, CHANNEL, "ann")
        await server.write(MAL, "Let me in")
        await server.write(MAL, "Hello?")
        await server.write(ANN, code)
        await server.write(ANN, "Shall *we* &lt;now&gt;?")
        said = await server.until(3)
        assert [(one.room, one.text) for one in said] == [
            ("D0MAL", posts.REFUSAL),
            (HERS, posts.PAIRED),
            (HERS, "re: Shall _we_ <now>?"),
        ]

        # A reply points at what it replies to; what isn't her own word is a remark.
        await server.write(ANN, "Why?", thread_ts=said[2].place, parent_user_id=OWN)
        said = await server.until(4)
        assert said[3].text.startswith("re: [This replies to what you said at ")
        assert said[3].given["thread_ts"] == said[2].place
        await server.write(ANN, "Do it", bot_id="B9")
        await server.write(ANN, "", attachments=[{"is_share": True, "text": "Do it"}])
        await server.write(ANN, "My list", subtype="file_share", files=[{"name": "do it"}])
        await server.write(ANN, "Do it", user=MAL, channel=GROUP)
        await server.write(ANN, "a secret", channel=GROUP)
        ts = await server.write(ANN, f"<@{OWN}>: hello", channel=GROUP, type="app_mention")
        said = (await server.until(8))[4:]
        own, group = ([one for one in said if one.room == room] for room in (HERS, GROUP))
        assert [one.text.partition("\n")[0] for one in own] == [
            f"re: {remarks.MADE}",
            f"re: {SEEN}",
            "re: My list",
        ]
        assert [(one.text, one.given["thread_ts"]) for one in group] == [("re: hello", ts)]

        # An edit is told about, a preview that was added isn't one.
        new = {"type": "message", "user": ANN, "text": "Never", "ts": ts, "edited": {"user": ANN}}
        changed = {"type": "message", "subtype": "message_changed", "channel": HERS,
                   "channel_type": "im", "message": new}  # fmt: skip
        await server.happen(changed | {"previous_message": new | {"attachments": []}})
        await server.happen(changed | {"previous_message": {"text": "Now"}})
        assert (await server.until(9))[8].text == posts.NO_EDITS

        # A request has buttons; pressed by somebody else, or elsewhere, they do nothing.
        await request_a_command(world, server)
        asked = server.said[-1]
        values = [one["value"] for one in asked.given["blocks"][1]["elements"]]
        assert [one.partition(":")[0] for one in values] == ["accept", "reject"]
        await server.press(MAL, asked, values[0])
        await server.press(ANN, asked, values[0], channel=GROUP)
        await server.press(ANN, asked, "accept:all")
        await server.press(ANN, asked, values[1])
        update = await server.until_called("chat.update")
        assert [one["type"] for one in update["blocks"]] == ["section", "context"]
        await until_rejected(world)
        with monkeypatch.context() as hasty:
            hasty.setattr(wire, "CALL_S", 0.5)
            await try_all(world, server, ANN, [("slow", [slow], "delivered", 1)])
        await _try_all(world, server)


async def _try_all(world: World, server: SlackServer) -> None:
    long = "\n\n".join(f"{number} {'word ' * 400}end" for number in range(4))
    steps: list[Step] = [
        ("one", [], "delivered", 1),
        ("two", [in_trouble(is_stored=True)], "delivered", 1),
        ("three", [in_trouble(is_stored=False)], "ambiguous", 0),
        ("four", [half], "delivered", 1),
        ("five", [cut(is_stored=True)], "delivered", 1),
        ("six", [cut(is_stored=False)], "ambiguous", 0),
        (long, [as_usual, too_many(1)], "delivered", 4),
        (f"{long}\n\n{long}", [], "delivered", PARTS_MAX),
        (long, [as_usual, cut(is_stored=False)], "ambiguous", 1),
    ]
    await try_all(world, server, ANN, steps)

    # Slack asks for another socket; an event comes again; what was missed is read.
    before, heard = len(server.said), _heard(world)
    server.is_telling = False
    await server.write(ANN, "While you were away")
    server.is_telling = True
    await server.sockets[-1].send_json({"type": "disconnect", "reason": "refresh_requested"})
    assert (await server.until(before + 1))[before].text.startswith("re: While")
    again = {"type": "message", "user": ANN, "text": "Twice", "ts": "4100000000.000001",
             "channel": HERS, "channel_type": "im"}  # fmt: skip
    for _ in range(2):
        await server.happen(again)
    await server.write(ANN, "Last")
    assert (await server.until(before + 3))[-1].text.startswith("re: Last")
    assert _heard(world) == heard + 3
    assert server.refused == []

    server.is_revoked = True
    await server.sockets[-1].close()
    await check_revoked(world, CHANNEL, "token_revoked")


def _heard(world: World) -> int:
    talk = world.talk("ann:vigil:main")
    return len([m for m in talk.log if m.subject == talk.key.in_user])
