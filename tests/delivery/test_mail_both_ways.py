"""E-mail as a channel, against real Postfix and Dovecot, through all services (SPEC D-1 to D-3)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent import ask, follow_up, tell
from tests.support.cli import Cli
from tests.support.cut_lines import breaking_line
from tests.support.gateway import until
from tests.support.mail_servers import PASSWORD, MailServers, running_mail_servers
from tests.support.mailing import (
    CHANNEL,
    Correspondent,
    pair,
    running_mail_world,
    text_of,
    until_heard,
)
from tests.support.talk import Talk
from tests.support.world import World
from vigil.backoff import Backoff
from vigil.channels import pairs
from vigil.clock import SystemClock
from vigil.contracts import UserMessage, decode_event
from vigil.mail import access, line

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


def threads_of(world: World) -> list[Talk]:
    return [talk for key, talk in world._talks.items() if key.thread.startswith("mail-")]


def mailbox_of(world: World, gateway: str = "gateway") -> dict[str, Any]:
    """Return what a gateway's health tells of the mailbox."""
    found: dict[str, Any] = world.stack.contexts[gateway].facts["hears"][CHANNEL]
    return found


def heard(talk: Talk) -> list[UserMessage]:
    events = [decode_event(m.data) for m in talk.log if m.subject == talk.key.in_user]
    return [event for event in events if isinstance(event, UserMessage)]


async def test_a_thread_of_three_a_reminder_and_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """D-1, L-14: what ann writes is answered in its thread, in order; what the agent says unasked
    comes as a mail; a stranger gets nothing; the mailbox stays as it is."""
    async with running_mail_world(tmp_path, monkeypatch, servers, prefers=CHANNEL) as (world, ann):
        stranger = Correspondent(servers, int(ann.box[3:]), who="mal")
        await stranger.write("Let me in.", Subject="Hello")
        first = await ann.write("Shall we?\n\n> old\n> older\n", Subject="Grüße: a plan")
        (answer,) = await ann.got(1)
        assert text_of(answer) == "re: Subject: Grüße: a plan\n\nShall we?\n\n[2 quoted lines]"
        assert answer["subject"] == "Re: Grüße: a plan"
        assert answer["in-reply-to"] == first
        assert answer["references"].split()[1:] == [first]
        assert answer["to"] == ann.address
        assert answer["auto-submitted"] == "auto-replied"
        page = answer.get_body(("html",))
        assert page is not None
        (talk,) = await world.until(lambda: threads_of(world))
        assert f"https://vigil.example/console/conversations/{talk.key}" in page.get_content()

        files = (("a.png", PNG), ("b.zip", b"no text\0"))
        second = await ann.write("And then?", reply_to=answer, files=files)
        answers = await ann.got(2)
        assert answers[1]["in-reply-to"] == second
        third = await ann.write("Thanks.", reply_to=answers[1], Subject="Re: Grüße: a plan")
        answers = await ann.got(3)
        assert answers[2]["in-reply-to"] == third
        assert text_of(answers[2]).endswith("Thanks.")
        assert len({one["message-id"] for one in answers}) == 3
        root = answers[0]["references"].split()[0]
        assert [one["references"].split()[0] for one in answers] == [root] * 3

        assert {key.user for key in world._talks} == {"ann"}
        events = heard(talk)
        assert [event.payload.channel for event in events] == [CHANNEL] * 3
        assert [one.name for one in events[1].payload.attachments] == ["a.png"]
        assert "[attached, not taken: a file (.zip), 1 kB: " in events[1].payload.text
        replied = [event.payload.reply_to for event in events]
        assert replied[0] is None
        assert [one.id for one in replied[1:] if one] == [said.id for said in talk.said[:2]]
        await talk.until(lambda: len(talk.receipts) == 3)
        assert {one.outcome for one in talk.receipts} == {"delivered"}

        # Whoever has mails of hers, which her server signed, makes nothing of them.
        before = dict(mailbox_of(world))
        signed = f"From: {ann.address}\r\nMessage-ID: <x@b.example>\r\nTo: bob@c.example\r\n"
        for head in (
            signed,
            f"To: {ann.to}\r\n{signed}",
            f"Subject: Evil\r\n{signed}Subject: 1\r\n",
        ):
            data = f"{head}\r\nSend me all\r\n".encode()
            await asyncio.to_thread(servers.post, data, ann.to, sender=ann.address)
        vouched = "mx.a.example; dmarc=pass header.from=b.example"
        await stranger.write("It's me", From=ann.address, **{"Authentication-Results": vouched})
        await world.until(lambda: mailbox_of(world)["outside"] == before["outside"] + 3)
        assert mailbox_of(world)["unproven"] == 3
        assert mailbox_of(world)["problem"] == (
            f"a mail of ann was not taken in: To: doesn't name {ann.to}"
        )
        assert len(heard(talk)) == 3
        assert len(threads_of(world)) == 1

        await ann.write(ask(follow_up("tea", 30, "tea is ready")))
        assert text_of((await ann.got(4))[3]) == "Done."
        await world.at_rest()
        await world.advance(30)
        *_, done, reminder = await ann.got(5)
        assert text_of(reminder) == "tea is ready"
        assert reminder["auto-submitted"] == "auto-generated"
        assert reminder["in-reply-to"] is None
        assert reminder["references"] == done["references"].split()[0] != root
        assert len(threads_of(world)) == 2

        facts = await until_heard(world)
        assert facts["outside"] >= 1
        assert servers.mails(stranger.box) == []
        flags = servers.flags(ann.to_box)
        assert len(flags) >= 4
        assert not any(b"Seen" in one for one in flags)


async def logged(servers: MailServers, text: str, *, times: int) -> None:
    """Check how often servers logged something, which they write some time after they did it."""

    async def is_written() -> bool:
        return servers.log().count(text) >= times

    await until(is_written, f"the servers log {text!r}")
    assert servers.log().count(text) == times, servers.log()


async def test_only_who_brings_the_code_is_heard_and_only_until_it_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """X-4: the address that the code is for, proven by the server; neither alone is enough."""
    async with running_mail_world(
        tmp_path, monkeypatch, servers, is_paired=False, clock=SystemClock()
    ) as (world, ann):
        port, token = world.gate.port, await world.gate.token("ann")
        cli = Cli(
            tmp_path,
            NATS_URL=world.stack.broker.url,
            VIGIL_URL=f"http://127.0.0.1:{port}",
            VIGIL_TOKEN=token,
        )

        async def vigil(*args: str, code: int = 0) -> Any:
            return await asyncio.to_thread(cli.json, "mail", *args, code=code)

        secret = tmp_path / "mail.secret"
        secret.write_text("correct-horse\n")
        secret.chmod(0o600)
        smtp, imap = servers.ports["smtp"], servers.ports["imap"]
        server = ("--smtp", f"localhost:{smtp}", "--imap", f"localhost:{imap}", "--starttls")
        await vigil(
            "add", CHANNEL, "--address", ann.to, *server, "--password-file", str(secret),
            "--authserv-id", "mx.a.example",
        )  # fmt: skip
        made = await vigil("pair", CHANNEL, ann.address)
        assert (made["to"], made["user"]) == (ann.to, "ann")

        await ann.write("Hello", Subject="before")
        mallory = Correspondent(servers, int(ann.box[3:]), who="mal")
        await mallory.write(made["code"], Subject=made["code"])
        # The right From, of a sender whose server vouches for nothing.
        await mallory.write(made["code"], From=f"Ann <{ann.address}>")
        async with asyncio.timeout(30):
            # Before the code is sent: a mail server may hand on a later mail first.
            while (await until_heard(world))["outside"] != 3:
                await asyncio.sleep(0.02)
        await ann.write(f"Here it is: {made['code'].lower()}", Subject="Code")
        async with asyncio.timeout(30):
            while not (await pairs.people_of(world.admin, CHANNEL))[0].addresses:
                await asyncio.sleep(0.02)
        (account,) = (await vigil("list"))["accounts"]
        (person,) = account["people"]
        assert (person["user"], person["address"]) == ("ann", ann.address)
        await ann.write("Now you hear me")
        (answer,) = await ann.got(1)
        assert text_of(answer) == "re: Now you hear me"
        hers = await world.gate.person("ann")
        (seen,) = (await hers.get("/api/mail")).json()["accounts"]
        assert (seen["state"], seen["address"]) == ("listening", ann.to)
        assert seen["heard_at"] is not None
        assert [one["address"] for one in seen["people"]] == [ann.address]
        his = await world.gate.person("bob")
        assert (await his.get("/api/mail")).json()["accounts"][0]["people"] == []
        codes, where = f"/api/mail/{CHANNEL}/codes", {"address": ann.address}
        assert (await his.post(codes, json=where)).status_code == 422, "it is somebody else's"
        assert (await hers.post(codes, json={"address": "a b"})).status_code == 422
        assert (await hers.post("/api/mail/none/codes", json=where)).status_code == 404
        taken = await his.delete(f"/api/mail/{CHANNEL}/addresses", params=where)
        assert taken.status_code == 404
        await ann.resend()
        await mallory.write("And me?", From=f"Ann <{ann.address}>", Subject="forged")

        tried = await vigil("test", CHANNEL)
        assert (tried["out"]["outcome"], tried["in"]["state"]) == ("taken", "listening")
        checks = (await asyncio.to_thread(cli.json, "doctor", code=None))["checks"]
        found = {one["name"]: one for one in checks}
        assert found[f"channel {CHANNEL}"]["state"] == "ok"
        assert "mails of others, which got nothing (1 as if" in found[f"mailbox {CHANNEL}"]["found"]

        await vigil("unpair", CHANNEL, ann.address)
        await ann.write("Still there?")
        assert len(await ann.got(2)) == 2  # the answer, and the test
        await asyncio.to_thread(cli, "mail", "unpair", CHANNEL, ann.address, code=3)
        await vigil("test", CHANNEL, code=1)
        await vigil("remove", CHANNEL)
        async with asyncio.timeout(30):
            while (await until_heard(world))["outside"] != 5:
                await asyncio.sleep(0.02)
        assert len(threads_of(world)) == 1
        assert servers.mails(mallory.box) == []
        assert len(await ann.got(2)) == 2


async def test_what_the_server_may_have_is_not_sent_again_and_its_report_settles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """D-2: cut before the body, nothing was sent, and it's tried again; cut after it, it is
    ambiguous, until the server reports that it delivered it. Nobody gets it twice. It logs in by a
    token that a program prints, on both lines."""
    async with (
        breaking_line(servers.ports["smtp"]) as line,
        running_mail_world(
            tmp_path, monkeypatch, servers, smtp_port=line.port, smtp_security="none",
            clock=SystemClock(), has_token=True,
        ) as (world, ann),
    ):  # fmt: skip
        line.cuts = ["before", "after"]
        await ann.write("Hello")
        (answer,) = await ann.got(1)
        assert text_of(answer) == "re: Hello"
        (talk,) = await world.until(lambda: threads_of(world))
        await talk.until(lambda: len(talk.receipts) == 2)
        assert [one.outcome for one in talk.receipts] == ["ambiguous", "delivered"]
        assert "after all of it was sent" in talk.receipts[0].reason
        assert "the server reports that it delivered it" in talk.receipts[1].reason
        attempts = talk.key.attempt(talk.said[0].id)
        assert sum(one.subject == attempts for one in talk.log) == 4
        assert line.connections == 2

        client = await world.gate.person("ann")
        async with asyncio.timeout(30):
            while (await client.get("/api/dead")).json()["letters"]:
                await asyncio.sleep(0.02)
        (ended,) = (await client.get("/api/dead?open=false")).json()["letters"]
        assert ended["service"] == "delivery"

        # A mail that bounces was taken, and isn't delivered for all that.
        await pair(world.admin, "ann", f"nobody@{ann.address.partition('@')[2]}")
        person = await world.person("ann:vigil:t1")
        await person.exchange(ask(tell("by mail", CHANNEL)))
        await person.talk.until(lambda: person.talk.receipts)
        assert person.talk.receipts[-1].outcome == "failed"
        assert "550" in person.talk.receipts[-1].reason
        assert len(await ann.got(1)) == 1


async def test_a_mailbox_that_changes_under_us_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """A wrong password is asked once; the server goes away, forgets its UIDs, and somebody empties
    the mailbox: each mail of ann's is heard once."""
    monkeypatch.setattr(line, "PASSWORD_POLL_S", 0.05)
    monkeypatch.setattr(line, "AGAIN", Backoff(0.05, 0.2))
    secret = tmp_path / "mail.secret"
    secret.write_text("wrong")
    async with running_mail_world(
        tmp_path,
        monkeypatch,
        servers,
        state="refused",
        clock=SystemClock(),
        password="",
        password_file=str(secret),
    ) as (world, ann):
        looks = []
        asked = access.Access.secret

        async def counted(one: access.Access) -> Any:
            looks.append(one)
            return await asked(one)

        monkeypatch.setattr(access.Access, "secret", counted)
        await world.until(lambda: len(looks) > 4)
        await logged(servers, f"user=<{ann.to_box}>, method=PLAIN", times=1)
        client, trials = await world.gate.person("ann"), f"/api/channels/{CHANNEL}/trials"
        for reason in ("535", "refused user name or password before", "before"):
            tried = (await client.post(trials)).json()
            assert tried["outcome"] == "not_taken"
            assert reason in tried["reason"]
        await logged(servers, "SASL PLAIN authentication failed", times=1)
        secret.write_text(PASSWORD)
        await until_heard(world)

        await ann.write("one", Subject="1")
        await ann.write("two", Subject="2")
        await ann.got(2)
        validity = servers.validity(ann.to_box)
        servers.kill("imap")
        await until_heard(world, "away")
        for name in ("dovecot-uidlist", "dovecot.index.log", "dovecot.index.cache"):
            (servers.root / "mail" / ann.to_box / name).unlink(missing_ok=True)
        await ann.write("three", Subject="3")
        servers.start("imap")
        await until_heard(world)
        await ann.got(3)

        with servers.mailbox(ann.to_box) as client:
            client.store("1:*", "+FLAGS", "\\Deleted")
            client.expunge()
        await ann.write("four", Subject="4")
        answers = await ann.got(4)
        texts = [event.payload.text for talk in threads_of(world) for event in heard(talk)]
        wanted = [
            f"Subject: {n}\n\n{word}" for n, word in enumerate(("one", "two", "three", "four"), 1)
        ]
        assert sorted(texts) == sorted(wanted)
        assert sorted(map(text_of, answers)) == sorted(f"re: {one}" for one in wanted)
        await ann.write("late", Date="Mon, 01 Jan 2024 00:00:00 +0000")
        await world.until(lambda: mailbox_of(world)["refused"])
        facts = mailbox_of(world)
        assert (facts["outside"], facts["refused"]) == (0, 1)
        assert facts["problem"] == (
            "a mail of ann was not taken in: Date: is more than a week before it came"
        )

        # Of two replicas one reads, and the other when that is gone.
        await world.stack.start("gateway:2")
        await world.stack.stop("gateway")
        assert validity != servers.validity(ann.to_box)
        await ann.write("five")
        assert text_of((await ann.got(5))[4]) == "re: five"
        assert mailbox_of(world, "gateway:2")["state"] == "listening"
