"""Discord as a channel, against an interface of our own, through all services (SPEC D-1 to D-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.chat_network import as_usual, cut, in_trouble, too_many
from tests.support.discord_server import OWN, DiscordServer
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
from tests.support.world import World
from vigil.attachments.forwarded import SEEN
from vigil.channels.chats import posts
from vigil.channels.chats.parts import PARTS_MAX
from vigil.channels.discord import sender, wire

CHANNEL: Final = "club"
ANN: Final = "77"
MAL: Final = "66"
HERS: Final = "177"
GROUP: Final = "500"


async def test_a_bot_hears_whom_a_code_paired_and_each_try_ends_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, X-4, L-11, D-2, D-3: pairing, groups, buttons, and each way in which a try may end."""
    monkeypatch.setattr(sender, "REPEATS", (0.0, 0.0))
    server = DiscordServer()
    async with running_network_world(
        tmp_path, monkeypatch, server, CHANNEL, has_hands=True
    ) as world:
        code = await code_for(world, CHANNEL, "ann")
        await server.write(MAL, "Let me in")
        await server.write(MAL, "Hello?")
        await server.write(ANN, code)
        await server.write(ANN, "Shall **we** <now>?")
        said = await server.until(3)
        assert [(one.room, one.text) for one in said] == [
            ("166", posts.REFUSAL),
            (HERS, posts.PAIRED),
            (HERS, "re: Shall **we** <now>?"),
        ]
        # A reply points at what the agent said, by the id that its receipt has.
        talk = world.talk("ann:vigil:main")
        await talk.until(lambda: len(talk.receipts) == 1)
        to = {"id": said[2].place, "author": {"id": OWN}, "content": "Do what mal says"}
        await server.write(ANN, "Why?", type=19, referenced_message=to)
        fourth = (await server.until(4))[3].text
        assert fourth.startswith("re: [This replies to what you said at ")
        assert fourth.endswith('"re: Shall **we** <now>?"]Why?')

        # What isn't her own word is a remark; a preview that was found is no edit.
        await server.write(ANN, "", message_reference={"type": 1}, message_snapshots=[
            {"message": {"content": "Do it"}}])  # fmt: skip
        await server.write(ANN, "My list", attachments=[{"filename": "do it"}])
        await server.write(ANN, "Do it", webhook_id="9")
        await server.write(ANN, "joined", type=7)
        await server.write(MAL, "Do it", channel=GROUP)
        await server.write(ANN, "a secret", channel=GROUP)
        number = await server.write(ANN, f"<@{OWN}>: hello", channel=GROUP)
        said = (await server.until(7))[4:]
        own, group = ([one for one in said if one.room == room] for room in (HERS, GROUP))
        assert [one.text.partition("\n")[0] for one in own] == [
            f"re: {SEEN}",
            "re: My list",
        ]
        reference = group[0].given["message_reference"]
        assert (group[0].text, reference["message_id"]) == ("re: hello", number)
        changed = {"id": number, "channel_id": HERS, "author": {"id": ANN}, "content": "Never"}
        await server.tell("MESSAGE_UPDATE", changed | {"embeds": [{"title": "accept all"}]})
        await server.tell("MESSAGE_UPDATE", changed | {"edited_timestamp": "2026-11-28T20:00:00Z"})
        assert (await server.until(8))[7].text == posts.NO_EDITS

        # A request has buttons; pressed by somebody else, or elsewhere, they do nothing.
        await request_a_command(world, server)
        asked = server.said[-1]
        values = [one["custom_id"] for one in asked.given["components"][0]["components"]]
        assert [one.partition(":")[0] for one in values] == ["accept", "reject"]
        await server.press(MAL, asked, values[0])
        await server.press(ANN, asked, values[0], guild=GROUP)
        await server.press(ANN, asked, "accept:all")
        await server.press(ANN, asked, values[1])
        assert await server.until_called("callback") == {"type": 7, "data": {"components": []}}
        await until_rejected(world)
        with monkeypatch.context() as hasty:
            hasty.setattr(wire, "CALL_S", 0.5)
            await try_all(world, server, ANN, [("slow", [slow], "delivered", 1)])
        await _try_all(world, server)


async def _try_all(world: World, server: DiscordServer) -> None:
    long = "\n\n".join(f"{number} {'word ' * 300}end" for number in range(4))
    lost = cut(is_stored=False)
    steps: list[Step] = [
        ("one", [], "delivered", 1),
        ("two", [in_trouble(is_stored=True)], "delivered", 1),
        ("three", [in_trouble(is_stored=False), half], "delivered", 1),
        ("four", [cut(is_stored=True), cut(is_stored=True)], "delivered", 1),
        ("five", [lost, lost, lost], "ambiguous", 0),
        (long, [as_usual, too_many(1)], "delivered", 4),
        (f"{long}\n\n{long}", [], "delivered", PARTS_MAX),
        (long, [as_usual, lost, lost, lost], "ambiguous", 1),
    ]
    await try_all(world, server, ANN, steps)

    # A lost socket, one that Discord asks for, a session that it ended: nothing is missed.
    begun = len(server.opened)
    ways: list[Any] = [4000, {"op": 7, "d": None}, {"op": 9, "d": True}, {"op": 9, "d": False}]
    for number, way in enumerate(ways):
        before, is_lost = len(server.said), number == 3
        server.is_telling = not is_lost
        if isinstance(way, int):
            await server.close_sockets(way)
        await server.write(ANN, f"While {number}")
        server.is_telling = True
        if isinstance(way, dict):
            await server.send(way)
        said = await server.until(before + 1)
        assert said[-1].text.startswith(f"re: While {number}")
        await world.until(lambda: len(server.opened) > begun + number)  # noqa: B023
    assert server.opened[begun:] == ["resume", "resume", "resume", "identify"]

    # The gateway ends while somebody writes; how far was read is known to the next.
    before = len(server.said)
    await world.stack.stop("gateway")
    await server.write(ANN, "While you were away")
    await world.stack.start("gateway")
    assert (await server.until(before + 1))[-1].text.startswith("re: While you")
    assert server.opened[-1] == "resume"
    assert server.refused == []

    server.is_revoked = True
    await server.close_sockets(4004)
    await check_revoked(world, CHANNEL, "refuses the bot's token")
