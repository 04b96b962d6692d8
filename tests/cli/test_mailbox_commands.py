"""`vigil mailbox`, and what doctor says of people's own mailboxes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.mail_servers import PASSWORD, running_mail_servers
from tests.support.mailboxes import NAME, running_mailbox_world, until_followed


async def test_a_mailbox_is_added_tried_and_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is said before anything is started; and how it's followed, once it is."""
    with running_mail_servers() as servers:
        async with running_mailbox_world(tmp_path / "run", monkeypatch, servers) as (world, own):
            token = await world.gate.token("ann")
            url = f"http://127.0.0.1:{world.gate.port}"
            environ = {"NATS_URL": world.stack.broker.url, "VIGIL_URL": url, "VIGIL_TOKEN": token}
            cli = Cli(tmp_path / "run", **environ)

            async def vigil(*args: str, code: int = 0) -> Any:
                return await asyncio.to_thread(cli.json, *args, code=code)

            secret = tmp_path / "secret"
            secret.write_text("wrong")
            secret.chmod(0o644)
            imap, smtp = (f"localhost:{servers.ports[one]}" for one in ("imaps", "smtps"))
            add = ("mailbox", "add", NAME, "--address", own.address, "--login", own.box)
            where = ("--imap", imap, "--smtp", smtp, "--password-file", str(secret))
            missing = await asyncio.to_thread(cli, *add, "--imap", imap, code=2)
            assert "set it, or password, or token_command" in missing.stderr
            await vigil(*add, *where)
            text = (tmp_path / "run/vigil.toml").read_text()
            assert 'user = "ann"' in text
            assert "others can read" in str(await asyncio.to_thread(cli, "doctor"))
            secret.chmod(0o600)
            (tmp_path / "run/vigil.toml").write_text(
                text + f'ca_file = "{servers.root}/cert.pem"\n'
            )
            tried = await vigil("mailbox", "test", NAME, code=1)
            assert "AUTHENTICATIONFAILED" in tried["in"] or "Authentication" in tried["in"]
            assert tried["out"].startswith("535 ")
            secret.write_text(PASSWORD)
            tried = await vigil("mailbox", "test", NAME)
            assert (tried["in"], tried["out"]) == ("", "")
            assert tried["found"] == "INBOX has 0 unread, and tells of new mail"

            # What is running took the section in, was refused, and tries the password of now.
            await until_followed(world)
            (told,) = (await vigil("mailbox", "list"))["mailboxes"]
            assert (told["state"], told["row"], told["problem"]) == ("listening", "mail-work", "")
            checks = await asyncio.to_thread(cli, "doctor")
            assert f"{own.address}: listening" in checks.stdout
            await vigil("mailbox", "remove", NAME)
            assert (await vigil("mailbox", "list"))["mailboxes"] == []
            gone = await asyncio.to_thread(cli, "mailbox", "test", NAME, code=3)
            assert "there is no mailbox 'work'; there is: none" in gone.stderr


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("address = 'no'", "address: is no plain address"),
        ("addres = 'a@b.example'", "did you mean address?"),
        ("digest_s = 5", "digest_s"),
        ("user = 'a.b'", "userId: may contain only"),
        ("imap_host = ''", "imap_host: must not be empty"),
        ("folder = ''", "folder: must not be empty"),
        ("password_file = 'x'", "set it, or password, or token_command: one of them"),
        ("smtp_security = 'ssl'", "smtp_security"),
        ("user = 'team'", "a mailbox is one person's"),
    ],
)
def test_a_mistake_in_a_section_is_named(tmp_path: Path, keys: str, reason: str) -> None:
    """Each key is checked when it's read, with no secret in what is said."""
    given = {
        "user": "'ann'", "address": "'a@b.example'", "imap_host": "'h'", "password": "'hunter2'",
    }  # fmt: skip
    key, _, value = keys.partition(" = ")
    lines = [f"{name} = {one}" for name, one in (given | {key: value}).items()]
    (tmp_path / "vigil.toml").write_text("\n".join(("[mailboxes.work]", *lines, "")))
    done = Cli(tmp_path)("mailbox", "list", code=0)
    assert reason in done.stderr
    assert "hunter2" not in done.stderr
