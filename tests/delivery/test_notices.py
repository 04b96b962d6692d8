"""Channels that only tell one person something, against receivers of our own (SPEC D-1, D-2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.support.channels import attempts, closed
from tests.support.delivery import Conversation, conversation
from tests.support.receiver import OK, Behaviour, Receiver, drip, raw, running_receiver, status
from tests.support.stack import running_stack
from vigil.channels.answers import NotTaken, Unclear
from vigil.channels.notices.apprise import AppriseWay
from vigil.channels.notices.apprise_sender import HANGING_MAX, AppriseSender
from vigil.channels.notices.ntfy import Ntfy
from vigil.channels.notices.ntfy_sender import notice_of
from vigil.contracts import Said

TOPIC: Final = "ann-4fZ0q"
LATER: Final = status(429, "Too Many Requests", **{"Retry-After": "0"})


class Action(msgspec.Struct, forbid_unknown_fields=True):
    """A button, by docs.ntfy.sh/publish/#publish-as-json."""

    action: str
    label: str
    url: str


class Published(msgspec.Struct, forbid_unknown_fields=True):
    """What ntfy takes, as far as it is used."""

    topic: str
    message: str
    title: str
    priority: int
    click: str = ""
    actions: tuple[Action, ...] = ()


@contextlib.asynccontextmanager
async def telling(
    home: Path, section: dict[str, Any], receiver: Receiver
) -> AsyncIterator[Conversation]:
    terms = {"timeout_s": 2.0, "attempts_max": 3, "backoff_base_s": 0.05, "backoff_cap_s": 0.2}
    channels = {"push": section | terms}
    health = {"circuit_open_s": 0.05}
    gateway = {"public_url": "https://vigil.example"}
    async with running_stack(
        home, services=("delivery",), channels=channels, health=health, gateway=gateway
    ) as it:
        yield conversation(await it.bus("admin"))


async def outcome(talk: Conversation) -> tuple[str, str]:
    """Say something there; returns how it ended, and why."""
    send = talk.send(channel="push")
    await talk.turn(send)
    receipt = await closed(talk.bus, talk.key, send.id)
    return receipt.outcome, receipt.reason


async def test_ntfy_is_asked_as_it_publishes_and_never_twice_for_what_it_may_have(
    tmp_path: Path,
) -> None:
    """429, 5xx, a lost line, half an answer, one that never ends: what surely isn't there is said
    again, and what came after it arrives."""
    behaviours: list[Behaviour] = [
        OK, LATER, OK, status(500), OK, raw(b""), raw(b"HTTP/1.1 2"), drip, OK,
    ]  # fmt: skip
    async with running_receiver(*behaviours) as receiver:
        section = {
            "kind": "ntfy", "url": f"http://127.0.0.1:{receiver.port}", "topic": TOPIC,
            "token": "tk_secret", "user": "ann", "allow_private": True,
        }  # fmt: skip
        async with telling(tmp_path, section, receiver) as talk:
            await talk.user()
            found = [await outcome(talk) for _ in range(7)]
            assert [how for how, _ in found] == [
                "delivered", "delivered", "delivered", "ambiguous", "ambiguous", "ambiguous",
                "delivered",
            ]  # fmt: skip
            assert found[5][1].startswith("no answer within 2 s")
            assert len(receiver.requests) == 9
            for request in receiver.requests:
                published = msgspec.json.decode(request.body, type=Published)
                assert (published.topic, published.priority) == (TOPIC, 3)
                assert request.headers["authorization"] == "Bearer tk_secret"
                assert published.actions[0].url.startswith(
                    "https://vigil.example/console/conversations/ann:vigil:"
                )
            other = conversation(talk.bus, "t2", "bob")
            await other.user()
            assert await outcome(other) == ("failed", "the channel is of ann alone; 1 try")
            assert len(receiver.requests) == 9


def test_what_is_urgent_is_louder_and_a_request_leads_to_where_it_is_decided() -> None:
    """Buttons lead to the console, and decide nothing by themselves; a text fits."""

    def published(text: str = "hi", url: str = "https://v.example/", **more: Any) -> Published:
        said = Said(
            id="e1", session_key="ann:vigil:main", text=text, caused_by="", turn_seq=1,
            at=datetime(2026, 11, 28, tzinfo=UTC), **more,
        )  # fmt: skip
        return msgspec.convert(notice_of(said, TOPIC, url), Published)

    assert [published(is_urgent=True).priority, published(asks="r1").priority] == [5, 4]
    assert published("**Due**:\n* `rent`").message == "Due:\n• rent"
    request = published(asks="r1")
    assert [one.url for one in request.actions] == [
        "https://v.example/console/inbox/r1",
        "https://v.example/console/conversations/ann:vigil:main",
    ]
    assert request.click == request.actions[0].url
    assert published(url="").actions == ()
    long = published(text="é" * 9_000, is_tainted=True).message
    assert len(long.encode()) <= 4_096
    assert long.startswith("(Content from outside had a part in this")
    page = "https://v.example/console/conversations/ann:vigil:main"
    assert long.endswith(f"… (cut; all of it: {page} )")


async def test_apprise_is_asked_once_and_its_no_is_no_reason_to_ask_again(tmp_path: Path) -> None:
    """It doesn't say how far it came, so a no is `ambiguous`; its address is told nowhere."""
    async with running_receiver(OK, status(500), raw(b"")) as receiver:
        (tmp_path / "push.url").write_text(f"json://u:pass@127.0.0.1:{receiver.port}/secret\n")
        section = {"kind": "apprise", "url_file": "push.url", "user": "ann"}
        async with telling(tmp_path, section, receiver) as talk:
            await talk.user()
            found = [await outcome(talk) for _ in range(3)]
            assert [one for one, _ in found] == ["delivered", "ambiguous", "ambiguous"]
            assert len(receiver.requests) == 3
            told = json.loads(receiver.requests[0].body)
            assert told["title"] == "Vigil"
            assert told["message"]
            assert "secret" not in "".join(reason for _, reason in found)
            assert await attempts(talk.bus, talk.key, "none") == []


async def test_what_hangs_in_apprise_holds_up_nothing_else(tmp_path: Path) -> None:
    """A service that never answers keeps a thread each time: of ours, a few, and no one else's."""
    going = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await going.wait()
        writer.close()

    said = Said(
        id="e1", session_key="ann:vigil:main", text="hi", caused_by="", turn_seq=1,
        at=datetime(2026, 11, 28, tzinfo=UTC),
    )  # fmt: skip
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            section = AppriseWay(url_file="push.url", user="ann", timeout_s=0.05)
            sender = AppriseSender(section, f"json://127.0.0.1:{port}/?cto=60&rto=60", "")
            try:
                found = [await sender.send(said, 1) for _ in range(HANGING_MAX + 1)]
                async with asyncio.timeout(30):
                    assert await asyncio.to_thread(len, "abc") == 3
            finally:
                going.set()
    assert [type(one) for one in found] == [Unclear] * HANGING_MAX + [NotTaken]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"topic": "a b"}, "topic"),
        ({"topic": ""}, "topic"),
        ({"url": "https://ntfy.example/topic"}, "url"),
        ({"url": "https://127.0.0.1"}, "url"),
        ({"is_idempotent": True}, "is_idempotent"),
        ({"console_url": "vigil.example"}, "console_url"),
    ],
)
def test_an_ntfy_that_cannot_work_is_refused_naming_the_field(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    found = Ntfy(**({"topic": "quite-secret", "user": "ann"} | changes)).examine(tmp_path)
    assert (found.state, complaint in found.found) == ("fail", True)
    assert "quite-secret" not in found.found


def test_an_apprise_without_one_address_is_refused(tmp_path: Path) -> None:
    way = AppriseWay(url_file="push.url", user="ann")
    assert way.examine(tmp_path).state == "fail"
    (tmp_path / "push.url").write_text("ntfy://a\nntfy://b\n")
    (tmp_path / "push.url").chmod(0o600)
    assert way.examine(tmp_path).state == "fail"
    (tmp_path / "push.url").write_text("ntfy://quite-secret\n")
    found = way.examine(tmp_path)
    assert (found.state, found.found) == ("ok", "ann's, by ntfy")
