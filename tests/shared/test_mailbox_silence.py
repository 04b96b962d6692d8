"""A mail server that takes the connection and says nothing: nobody waits for it for ever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from vigil.channels.contract import ChannelContext
from vigil.channels.mail.section import MailAccount
from vigil.channels.mail.sender import MailSender
from vigil.clock import SystemClock
from vigil.errors import InvalidInput
from vigil.mail import mailbox
from vigil.mail.access import RefusedSecret
from vigil.mail.mailbox import LoginRefused, Mailbox, MailboxLost
from vigil.mail.smtp import trust


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Of a server that is silent."""
    lines: list[asyncio.StreamWriter] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        for one in lines:
            one.close()
        server.close()


@pytest.mark.parametrize("security", ["tls", "none"])
async def test_a_silent_server_is_left(
    port: int, monkeypatch: pytest.MonkeyPatch, security: Literal["tls", "none"]
) -> None:
    """In TLS, or before its greeting."""
    monkeypatch.setattr(mailbox, "CONNECT_S", 0.1)
    monkeypatch.setattr(mailbox, "READ_S", 0.1)
    box = Mailbox()
    with pytest.raises(MailboxLost, match="did not answer in time"):
        await opening(box, port, security)
    await box.close()


async def test_a_server_that_is_always_about_to_answer_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Dovecot is, whose own service for log-ins is away."""
    monkeypatch.setattr(mailbox, "CALL_S", 0.2)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while not writer.is_closing():
                writer.write(b"* OK Waiting for authentication process to respond..\r\n")
                await writer.drain()
                await asyncio.sleep(0.02)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        box = Mailbox()
        with pytest.raises(MailboxLost):
            await opening(box, server.sockets[0].getsockname()[1], "none")
        await box.close()


async def test_what_a_server_tells_as_one_begins_to_wait_is_heard() -> None:
    """D-2: in one piece with its leave to wait, where the library doesn't look for it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        idling = b""
        while line := await reader.readline():
            tag, word = line.split()[0], line.split()[-1]
            if word == b"CAPABILITY":
                writer.write(b"* CAPABILITY IMAP4rev1 IDLE\r\n")
            elif line.split()[1:2] == [b"EXAMINE"]:
                writer.write(b"* 1 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n* OK [UIDNEXT 2] ok\r\n")
            elif word == b"IDLE":
                idling = tag
                writer.write(b"+ idling\r\n* 2 EXISTS\r\n")
                continue
            writer.write(b"%s OK done\r\n" % (idling if word == b"DONE" else tag))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        box = Mailbox()
        await opening(box, server.sockets[0].getsockname()[1], "none")
        async with asyncio.timeout(20):
            await box.wait(600.0)
        await box.close()


async def test_what_a_server_tells_while_it_is_asked_is_asked_for() -> None:
    """D-2: of a mail that comes during a search the server tells once, behind the answer that
    doesn't have it; who then waits for news of it (IDLE) waits until it's time to look again."""
    searches: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        while line := await reader.readline():
            tag, word = line.split()[:2]
            if word == b"CAPABILITY":
                writer.write(b"* CAPABILITY IMAP4rev1 IDLE\r\n")
            elif word == b"EXAMINE":
                writer.write(b"* 1 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n* OK [UIDNEXT 2] ok\r\n")
            elif line.split()[1:3] == [b"UID", b"SEARCH"]:
                searches.append(line)
                is_first = len(searches) == 1
                writer.write(b"* SEARCH\r\n* 2 EXISTS\r\n" if is_first else b"* SEARCH 2\r\n")
            writer.write(b"%s OK done\r\n" % tag)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        box = Mailbox()
        await opening(box, server.sockets[0].getsockname()[1], "none")
        assert await box.newer(1) == [2]
        assert len(searches) == 2
        assert await box.newer(2) == []
        await box.close()


@pytest.mark.parametrize("is_token", [True, False])
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", MailboxLost),
        (b"* BYE Internal login failure\r\n", MailboxLost),
        (b"%s NO [UNAVAILABLE] Temporary authentication failure\r\n", MailboxLost),
        (b"%s NO [AUTHENTICATIONFAILED] Authentication failed.\r\n", LoginRefused),
        (b"%s NO no\r\n", LoginRefused),
    ],
)
async def test_a_line_that_is_cut_while_one_logs_in_is_no_refusal(
    answer: bytes, kind: type[Exception], *, is_token: bool
) -> None:
    """D-2: what was refused isn't tried again for six hours, so a server that was killed just then
    would have been left alone for that long."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        tag = (await reader.readline()).split()[0]
        writer.write(b"* CAPABILITY IMAP4rev1 AUTH=XOAUTH2\r\n%s OK done\r\n" % tag)
        tag = (await reader.readline()).split()[0]
        if is_token:
            writer.write(b"+ \r\n")
            await reader.readline()
        writer.write(answer % tag if b"%s" in answer else answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        box = Mailbox()
        with pytest.raises(kind):
            await opening(box, server.sockets[0].getsockname()[1], "none", is_token=is_token)
        await box.close()


async def test_who_gives_up_waiting_ends_the_call(port: int) -> None:
    box = Mailbox()
    call = asyncio.create_task(opening(box, port, "none"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await box.close()


async def opening(box: Mailbox, port: int, security: str, *, is_token: bool = False) -> Any:
    return await box.open(
        "127.0.0.1",
        port,
        security=security,
        trust=trust("", Path()) if security == "tls" else None,
        user="u",
        secret="s",
        is_token=is_token,
        folder="INBOX",
    )


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_nothing_was_sent_to_a_silent_server(
    port: int, tmp_path: Path, security: Literal["tls", "starttls"]
) -> None:
    """D-2: so it may be tried again."""
    account = MailAccount(
        address="vigil@a.example",
        smtp_host="127.0.0.1",
        smtp_port=port,
        smtp_security=security,
        password="hunter2",
        timeout_s=0.1,
    )
    context = ChannelContext(name="post", home=tmp_path, clock=SystemClock())
    sender = MailSender(account, account.access(tmp_path), context)
    answer = await sender._sent("0f", "ann@b.example", b"Subject: x\r\n\r\nx\r\n")
    assert not answer.is_final  # type: ignore[union-attr]
    assert answer.reason.startswith("before it was sent: ")
    assert "hunter2" not in repr((account, account.access(tmp_path), sender, answer))


async def test_a_program_that_prints_no_token_is_named_and_its_words_arent(tmp_path: Path) -> None:
    """X-6: secrets are in no text."""
    for line in (("false",), ("echo", "secret", "words"), ("/nowhere/mail-token",)):
        account = MailAccount(address="a@a.example", smtp_host="h", token_command=line)
        with pytest.raises(Exception, match="token_command: ") as found:
            await account.access(tmp_path).secret()
        assert "secret" not in str(found.value)
    account = MailAccount(address="a@a.example", smtp_host="h", token_command=("echo", "ya29"))
    assert await account.access(tmp_path).secret() == "ya29"


def test_what_was_refused_is_not_shown_again_soon() -> None:
    refused = RefusedSecret(SystemClock())
    refused.note("wrong")
    assert refused.waits_s("wrong") > 3600
    assert refused.waits_s("right") == 0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"address": "vigil"}, "address"),
        ({"is_idempotent": True}, "is_idempotent"),
        ({"password": ""}, "password"),
        ({"token_command": ("x",)}, "token_command"),
        ({"password": "", "password_file": "gone"}, "password_file"),
        ({"smtp_port": 4222}, "smtp_port"),
        ({"console_url": "vigil.example"}, "console_url"),
    ],
)
def test_an_account_that_cannot_work_is_refused(
    tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    """X-6: with the field; `vigil doctor` says it, too."""
    values = {"address": "vigil@a.example", "smtp_host": "h", "password": "hunter2"} | changes
    account = MailAccount(**values)
    context = ChannelContext(
        name="post", home=tmp_path, clock=SystemClock(), ports_never=frozenset({4222})
    )
    with pytest.raises(InvalidInput) as refused:
        account.sender(context)
    assert refused.value.field == field
    if field != "smtp_port":
        assert account.examine(tmp_path).state == "fail"


def test_an_account_that_believes_nobody_says_so(tmp_path: Path) -> None:
    account = MailAccount(address="vigil@a.example", smtp_host="h", imap_host="i", password="x")
    assert "nobody is heard" in account.examine(tmp_path).found


async def test_a_mail_that_comes_while_the_server_searches_is_seen_before_one_waits() -> None:
    """It's told beside the answer, once: who waits for it then would wait for the next poll."""
    answers = {
        b"LOGIN": b"",
        b"CAPABILITY": b"* CAPABILITY IMAP4rev1 IDLE\r\n",
        b"EXAMINE": b"* 0 EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\n* OK [UIDNEXT 1] ok\r\n",
    }
    searches = [b"* SEARCH\r\n* 1 EXISTS\r\n", b"* SEARCH 1\r\n", b"* SEARCH\r\n"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK hello\r\n")
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                tag, word, *_ = line.split()
                if word == b"IDLE":  # and the mail is there before anybody waits
                    writer.write(b"+ idling\r\n* 2 EXISTS\r\n")
                    await reader.readline()
                told = searches.pop(0) if word == b"UID" else answers.get(word, b"")
                writer.write(told + tag + b" OK done\r\n")

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        box = Mailbox()
        await opening(box, server.sockets[0].getsockname()[1], "none")
        assert await box.newer(0) == [1]
        assert await box.newer(1) == []
        assert searches == []
        async with asyncio.timeout(30):
            await box.wait(600)
        await box.close()
