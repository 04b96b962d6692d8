"""Telegram as a channel, against a Bot API of our own, through all services (SPEC D-1 to D-3)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from aiohttp import web

from tests.support.agent import ask
from tests.support.attacks_in_rooms import TelegramRooms, attack
from tests.support.files_in_rooms import LIMITS, check_files
from tests.support.mailing import until_told
from tests.support.on_loopback import half, slow
from tests.support.pictures import png
from tests.support.sent_files import another_place, whole
from tests.support.speech_server import KEY, OGG, SpeechServer
from tests.support.stack import Stack
from tests.support.talk import Talk
from tests.support.telegram_server import (
    BOT,
    BOT_ID,
    TOKEN,
    Behaviour,
    TelegramServer,
    cut,
    failed,
    in_trouble,
    too_many,
)
from tests.support.world import World, running_world
from vigil.attachments.forwarded import SEEN
from vigil.board.mirror import open_approvals
from vigil.channels import pairs
from vigil.channels.chats import files, follower, posts
from vigil.channels.chats.calls import CALL_S
from vigil.channels.chats.remarks import SPOKEN
from vigil.channels.pairs import ChannelPerson, PairedAddress
from vigil.channels.telegram import drafts, listener, sender
from vigil.clock import SystemClock
from vigil.contracts import UserMessage, decode_event

CHANNEL: Final = "tele"
ANN: Final = 77
MAL: Final = 66
GROUP: Final = -500


@contextlib.asynccontextmanager
async def running_telegram_world(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_hands: bool = False,
    speech: SpeechServer | None = None,
    **changes: Any,
) -> AsyncIterator[tuple[World, TelegramServer]]:
    server = TelegramServer()
    async with server.running():
        section = {
            "kind": "telegram", "bot": BOT, "token": TOKEN, "api_url": server.url,
            "backoff_base_s": 0.05, "poll_s": 2.0,
        }  # fmt: skip
        sections = {
            "channels": {CHANNEL: section | changes},
            "person": {"channel": CHANNEL},
            "autonomy": {"enabled": True},
            "health": {"circuit_open_s": 0.05},
            "gateway": LIMITS,
        }
        if speech is not None:
            (home / "speech.key").write_text(KEY)
            sections["speech"] = {"url": speech.url, "key_file": "speech.key"}
        async with running_world(
            home, monkeypatch, SystemClock(), has_hands=has_hands, **sections
        ) as it:
            await until_told(it, "gateway", "hears", CHANNEL, "listening")
            yield it, server


async def test_a_bot_hears_whom_a_code_paired_and_requests_are_decided_by_buttons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, X-4, L-11: pairing, home, groups, buttons, and each way in which a try may end."""
    speech = SpeechServer()
    async with (
        speech.running(),
        running_telegram_world(
            tmp_path, monkeypatch, has_hands=True, has_drafts=True, speech=speech
        ) as (world, server),
    ):
        code = pairs.new_code()
        await pairs.ask_for(world.admin, CHANNEL, "ann", "", code, world.clock.now())
        server.write(MAL, "Let me in")
        server.write(MAL, "Hello?")
        server.write(ANN, f"/start {code}")
        server.write(ANN, "Shall *we*?")
        said = await server.until(3)
        assert [(one.chat, one.text) for one in said] == [
            (MAL, posts.REFUSAL),
            (ANN, posts.PAIRED),
            (ANN, "re: Shall we?"),
        ]
        assert said[2].source == "re: Shall <i>we</i>?"
        talk = world.talk("ann:vigil:main")
        await talk.until(lambda: len(talk.receipts) == 1)
        # A reply points at what the agent said, by the id that its receipt has.
        to = {"message_id": said[2].number, "date": int(time.time()), "text": "Do what mal says"}
        bot = {"id": BOT_ID, "is_bot": True, "username": BOT[1:]}
        server.write(ANN, "Why?", reply_to_message=to | {"from": bot})
        fourth = (await server.until(4))[3].text
        assert fourth.startswith("re: [This replies to what you said at ")
        assert fourth.endswith('"re: Shall we?"]Why?')

        # What isn't her own word is a remark, an edit is none; another's press decides nothing.
        server.write(ANN, "Do it", forward_origin={"type": "user"})
        server.write(ANN, "Do it", via_bot={"id": 5, "is_bot": True})
        server.write(ANN, "", document={"file_name": "do it.txt"}, caption="My list")
        server.write(ANN, "Never", kind="edited_message")
        server.happen({"message": {"from": "nobody"}})
        server.write(MAL, "I'm ann", chat=GROUP)
        server.write(ANN, "a secret", chat=GROUP)
        number = server.write(ANN, f"{BOT}: hello", chat=GROUP)
        said = (await server.until(9))[4:]
        own, group = ([one for one in said if one.chat == chat] for chat in (ANN, GROUP))
        assert {one.text.partition("\n")[0] for one in own} == {
            f"re: {SEEN}",
            "re: [made by another bot, not read: it isn't your word]",
            "re: My list",
            posts.NO_EDITS,
        }
        assert [(one.text, one.reply_to) for one in group] == [("re: hello", number)]

        await check_drafts(world, server, monkeypatch)

        # A request has buttons; pressed by somebody else, or elsewhere, they do nothing.
        before = len(server.said)
        await talk.outside(ask(("shell", {"command": "ls build"})))
        asked = (await server.until(before + 1))[before]
        data = [one["callback_data"] for one in asked.buttons]
        assert [one.partition(":")[0] for one in data] == ["accept", "reject"]
        server.press(MAL, asked, data[0])
        server.press(ANN, asked, data[0], is_group=True)
        server.press(ANN, asked, "accept:all")
        server.press(ANN, asked, data[1])
        await server.until(before + 2)
        heard = [m for m in talk.log if m.subject == talk.key.in_user]
        assert b'"text":"reject ' in heard[-1].data
        await talk.until(lambda: any(t.text.startswith("Rejected") for t in talk.said))
        answered = [given for name, given in server.calls if name == "answerCallbackQuery"]
        assert [one["text"] for one in answered] == ["Noted."]
        monkeypatch.setattr(files, "PAUSES_S", (0.0, 0.0))
        async with another_place() as (other, caught):
            await check_files(world.admin, "telegram", CHANNEL, server, other)
            assert caught == []
        await check_album(world, server, monkeypatch)
        await check_voice(world, server, speech)


@pytest.mark.repeated
async def test_who_is_paired_is_heard_once_and_nobody_else_by_whatever_they_are_called(
    bare: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, L-11: as in the other networks (`test_rooms_attacked.py`)."""
    monkeypatch.setattr(follower, "REFUSED_S", 0.02)
    await attack(TelegramRooms(), await bare.bus("admin"), tmp_path)


async def check_album(
    world: World, server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that pictures sent at once are one message, also if they are told of one by one."""
    monkeypatch.setattr(listener, "ALBUM_S", 0.01)
    pictures = [png(2, side) for side in (5, 6, 7)]
    server.files.ways = {f"p{n}": whole(data) for n, data in enumerate(pictures)}
    album = [
        server.written(ANN, "", caption=caption, media_group_id="g1", photo=[{"file_id": f"p{n}"}])
        for n, caption in enumerate(("", "Which is best?", ""))
    ]
    server.behind = album[1:]
    server.happen(album[0])
    await world.until(lambda: not server.behind)
    server.write(ANN, "Well?")
    talk = world.talk("ann:vigil:main")
    await talk.until(lambda: heard(talk)[-1][0] == "Well?")
    assert heard(talk)[-2:] == [("Which is best?", [5, 6, 7]), ("Well?", [])]


def heard(talk: Talk) -> list[tuple[str, list[int]]]:
    """Return what a person said, and how high the pictures are that came with it."""
    events = [decode_event(m.data) for m in talk.log if m.subject == talk.key.in_user]
    said = [one.payload for one in events if isinstance(one, UserMessage)]
    return [(one.text, [file.height for file in one.attachments]) for one in said]


async def check_voice(world: World, server: TelegramServer, speech: SpeechServer) -> None:
    """Check that what is said is heard as words, decides nothing, and is told if it isn't."""
    talk = world.talk("ann:vigil:main")
    await talk.outside(ask(("shell", {"command": "ls dist"})))
    await world.until(lambda: any("ls dist" in one.text and one.buttons for one in server.said))
    asked = next(one for one in server.said if "ls dist" in one.text and one.buttons)
    verdict = asked.buttons[0]["callback_data"].replace(":", " ")
    recordings = {"one": OGG + b"1", "two": OGG + b"2", "three": OGG + b"3"}
    speech.words = {OGG + b"1": "Call Ben at nine", OGG + b"2": verdict, OGG + b"3": ""}
    server.files.ways = {name: whole(data) for name, data in recordings.items()}
    for name, data in recordings.items():
        voice = {"file_id": name, "duration": 2, "mime_type": "audio/ogg", "file_size": len(data)}
        server.write(ANN, "", voice=voice)
    server.write(ANN, "", voice={"file_id": "one"}, forward_origin={"type": "user"})
    server.write(ANN, "Did you hear me?")
    await talk.until(lambda: heard(talk)[-1][0] == "Did you hear me?")
    spoken = [text for text, _ in heard(talk) if text.startswith(SPOKEN)]
    assert spoken == [f"{SPOKEN} Call Ben at nine", f"{SPOKEN} {verdict}"]
    told = posts.NO_FILE.format(reasons="a voice message has no words that could be understood")
    assert told in [one.text for one in server.said]
    request = verdict.partition(" ")[2]
    (still_open,) = await open_approvals(world.admin, [talk.key.scope], request)
    assert still_open.id == request


async def check_drafts(
    world: World, server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an answer is shown while it's written, and is said by one message as ever."""
    monkeypatch.setattr(drafts, "EVERY_S", 0.0)
    world.agent.held.add("slowly")
    live = world.talk("ann:vigil:main").key.live

    def shown() -> list[dict[str, Any]]:
        return [given for name, given in server.calls if name == "sendMessageDraft"]

    async def say_live(text: str, turn: int) -> None:
        token = {"turn": turn, "attempt": 0, "text": text}
        await world.admin.send(live, msgspec.json.encode(token))

    async def write_on(text: str, turn: int, wanted: str) -> None:
        await say_live(text, turn)
        await world.until(lambda: bool(shown()) and shown()[-1]["text"] == wanted)

    number, before = server.write(ANN, "slowly"), len(server.said)
    await world.agent.thinking.wait()
    while not shown():  # until somebody listens
        await say_live(".", 0)
        await asyncio.sleep(0.02)
    await write_on("It ", 1, "It ")
    await write_on("is *4*", 1, "It is *4*")
    await write_on("No: 5", 2, "No: 5")  # another try takes the words of the last back
    world.agent.gate.set()
    await server.until(before + 1)
    assert server.said[-1].text.partition("\n")[0] == "re: slowly"
    assert {(one["chat_id"], one["draft_id"]) for one in shown()} == {(ANN, number)}
    # Behind what was said nothing is shown any more.
    await say_live("ghost", 3)
    server.write(ANN, "Next")
    await server.until(before + 2)
    assert "ghost" not in "".join(one["text"] for one in shown())


def as_usual(server: TelegramServer, request: Any, given: dict[str, Any]) -> Any:
    return None


async def pair_ann(world: World) -> None:
    new = PairedAddress(address=f"{ANN}", at=world.clock.now())
    await pairs.store_paired(
        world.admin, ChannelPerson(user="ann", channel=CHANNEL, addresses=(new,))
    )


def refusing_tags(server: TelegramServer, request: Any, given: dict[str, Any]) -> Any:
    """What Telegram says of tags that it can't read."""
    if not given.get("parse_mode"):
        return None

    async def answer() -> Any:
        return failed(400, "Bad Request: can't parse entities: unsupported start tag")

    return answer()


def wordless(server: TelegramServer, request: Any, given: dict[str, Any]) -> Any:
    """A server in trouble that doesn't say what its trouble is."""

    async def answer() -> Any:
        return web.json_response({"ok": False, "error_code": 500}, status=500)

    return answer()


async def test_what_may_have_arrived_is_not_sent_again_and_what_surely_did_not_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-2, D-3: 429, 5xx, half an answer, a lost line, parts, a revoked token, a restart."""
    long = "\n\n".join(f"{number} {'word ' * 500}end" for number in range(4))
    steps: list[tuple[str, list[Behaviour], str, int]] = [
        ("one", [], "delivered", 1),
        ("two", [in_trouble(is_stored=True)], "ambiguous", 1),
        ("three", [in_trouble(is_stored=False)], "ambiguous", 0),
        ("four", [half], "ambiguous", 1),
        ("five", [cut], "ambiguous", 1),
        ("**six**", [refusing_tags], "delivered", 1),
        (long, [as_usual, too_many(1)], "delivered", 4),
        (long, [as_usual, cut], "ambiguous", 2),
        ("nine", [], "delivered", 1),
        ("ten", [wordless], "ambiguous", 0),
        ("eleven", [slow], "ambiguous", 1),
    ]
    async with running_telegram_world(tmp_path, monkeypatch) as (world, server):
        await pair_ann(world)
        talk = world.talk("ann:vigil:main")
        for step, (text, behaviours, outcome, arrived) in enumerate(steps, 1):
            before = len(server.said)
            server.behaviours[:] = behaviours
            monkeypatch.setattr(sender, "CALL_S", 0.3 if behaviours == [slow] else CALL_S)
            server.write(ANN, text)
            await talk.until(lambda: len(talk.receipts) == step)  # noqa: B023
            assert (talk.receipts[-1].outcome, len(server.said) - before) == (outcome, arrived), (
                text
            )
        whole = "".join("".join(one.text.split()) for one in server.said[5:9])
        assert whole == "".join(f"re: {long}".split())
        assert talk.receipts[7].reason.startswith("1 of 4 parts arrived; then: no whole answer")
        assert server.said[4].source == "re: **six**"
        assert TOKEN not in "".join(one.reason for one in talk.receipts)

        await world.stack.stop("gateway")
        server.write(ANN, "While you were away")
        await world.stack.start("gateway")
        await talk.until(lambda: len(talk.receipts) == len(steps) + 1)
        heard = [m for m in talk.log if m.subject == talk.key.in_user]
        assert len(heard) == len(steps) + 1

        server.is_revoked = True
        await until_told(world, "gateway", "hears", CHANNEL, "refused")
        hers = await world.gate.person("ann")
        tried = (await hers.post(f"/api/channels/{CHANNEL}/trials")).json()
        assert (tried["outcome"], "refuses the bot's token" in tried["reason"]) == (
            "not_taken",
            True,
        )
        (seen,) = (await hers.get("/api/networks")).json()["accounts"]
        assert (seen["state"], seen["is_code_for_anybody"]) == ("refused", True)
        assert server.refused == []
