"""`vigil token --bus`: credentials of outside programs, on a running Vigil (SPEC P-2, P-7)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import nats
import nats.errors
import pytest

from tests.support.cli import Cli, eventually, running_vigil
from vigil.local import runfile

EVENT = {"specversion": "1.0", "id": "1", "source": "urn:test", "type": "t", "data": "red"}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("home")) as cli:
        yield cli


async def publish(made: dict[str, Any], **event: Any) -> int:
    """Publish with plain nats-py; return where it was stored."""
    connection = await nats.connect(
        made["url"],
        nkeys_seed=made["seed_file"],
        inbox_prefix=made["inbox_prefix"].encode(),
        allow_reconnect=False,
    )
    try:
        data = json.dumps(EVENT | event).encode()
        return int((await connection.jetstream().publish(made["publish"], data)).seq)
    finally:
        await connection.close()


async def signals(made: dict[str, Any], wanted: int) -> list[dict[str, Any]]:
    """Pull and acknowledge signals with plain nats-py."""
    connection = await nats.connect(
        made["url"],
        nkeys_seed=made["seed_file"],
        inbox_prefix=made["inbox_prefix"].encode(),
        allow_reconnect=False,
    )
    try:
        stream = connection.jetstream(domain=made["domain"])
        consumer = await stream.pull_subscribe_bind(made["consumer"], stream=made["stream"])
        found = []
        while len(found) < wanted:
            for message in await consumer.fetch(1, timeout=10):
                await message.ack_sync()
                found.append(json.loads(message.data))
        return found
    finally:
        await connection.close()


def test_signals_begin_where_the_credential_says(tmp_path: Path) -> None:
    """SPEC C-4, P-7: from an earlier point, and after a restart from where the program was."""
    with running_vigil(tmp_path / "home") as cli:
        cli("send", "--thread", "t1", "hello")
        told = cli.json("token", "create", "--bus", "--user", "me", "--last", "1h")
        first, second = asyncio.run(signals(told, 2))
        assert [first["kind"], second["kind"]] == ["session.started", "turn.committed"]
        cli("down")
        cli("up", "--detach")
        (third,) = asyncio.run(signals(told | {"url": cli.run_state.nats_url}, 1))
        assert third["kind"] == "message.sent"
        assert "--bus" in cli("token", "create", "--user", "me", "--last", "1h", code=2).stderr
        late = cli("token", "create", "--bus", "--user", "x", "--last", "now-ish", code=2)
        assert "no moment" in late.stderr


def test_a_program_publishes_at_once(cli: Cli) -> None:
    """From the command alone: what it prints is all that a plain client needs."""
    made = cli.json("token", "create", "--bus", "--user", "ann", "--name", "ci")
    assert (made["id"], made["publish"], made["domain"]) == ("bus:ann.ci", "event.ann.ci", "vigil")
    assert Path(made["seed_file"]).stat().st_mode & 0o777 == 0o600
    asyncio.run(publish(made, subject="ann:vigil:t1"))

    def is_there() -> bool:
        lines = cli("tail", "session", "ann:vigil:t1", "--no-follow", "--json", code=None)
        return '"bus:ci"' in lines.stdout

    eventually(is_there)
    shown = cli("token", "create", "--bus", "--user", "eve").stdout
    assert "event.eve.default" in shown
    assert shown.count("\n") == 8


def test_a_credential_outlives_a_restart(tmp_path: Path) -> None:
    """Its address, too: the port is kept in the home, and a change of it is told."""
    with running_vigil(tmp_path / "home") as cli:
        made = cli.json("token", "create", "--bus", "--user", "ann", "--name", "ci")
        cli("down")
        done = cli("up", "--detach")
        assert "no longer on port" not in done.stderr
        assert cli.run_state.nats_url == made["url"]
        asyncio.run(publish(made, subject="ann:vigil:t1"))
        cli("down")
        port = int(made["url"].rpartition(":")[2])
        with socket.create_server(("127.0.0.1", port)):
            done = cli("up", "--detach")
            assert cli.run_state.nats_url != made["url"]
            assert f"no longer on port {port}" in done.stderr
            assert "broker.port_taken" in (cli.home / "logs" / "up.log").read_text()
        asyncio.run(publish(made | {"url": cli.run_state.nats_url}, subject="ann:vigil:t1"))


def test_it_is_listed_and_revoked(cli: Cli) -> None:
    made = cli.json("token", "create", "--bus", "--user", "bob", "--admin")
    assert made["signals"] == "signal.>"
    listed = {one["id"]: one for one in cli.json("token", "list")["programs"]}
    assert listed["bus:bob.default"]["is_admin"]
    assert "bus, admin" in cli("token", "list").stdout
    assert cli.json("token", "revoke", "bus:bob.default") == {"revoked": "bus:bob.default"}
    assert "bus:bob.default" not in cli("token", "list").stdout
    assert not Path(made["seed_file"]).exists()
    cli("token", "revoke", "bus:bob.default", code=3)


def test_what_cannot_be_made(cli: Cli, tmp_path: Path) -> None:
    """SPEC X-6: a bad name, a name twice, an end that isn't kept, nothing that runs."""
    assert "letters" in cli("token", "create", "--bus", "--user", "a.b", code=2).stderr
    bad = cli("token", "create", "--bus", "--user", "ann", "--name", "a/b", code=2)
    assert "letters" in bad.stderr
    cli("token", "create", "--bus", "--user", "dan")
    assert "already" in cli("token", "create", "--bus", "--user", "dan", code=2).stderr
    cli("token", "create", "--bus", "--user", "x", "--expires-days", "3", code=2)
    stopped = Cli(tmp_path / "stopped")
    assert "not running" in stopped("token", "create", "--bus", "--user", "x", code=3).stderr
    assert not (tmp_path / "stopped").exists()


def test_a_broker_that_is_somebody_else_is_left_alone(cli: Cli) -> None:
    """The pid of the run file is looked at first; a credential that isn't known isn't kept."""
    run = cli.run_state
    runfile.write(cli.run_file, msgspec.structs.replace(run, broker_pid=os.getpid()))
    try:
        done = cli("token", "create", "--bus", "--user", "fay", code=3)
        assert "no broker of this home" in done.stderr
        assert "bus:fay" not in cli("token", "list").stdout
    finally:
        runfile.write(cli.run_file, run)


def test_a_revocation_that_the_broker_did_not_hear_of_is_repeated(cli: Cli) -> None:
    """X-4: it fails, and says so; again, it ends what the broker still let in."""
    made = cli.json("token", "create", "--bus", "--user", "gus")
    run = cli.run_state
    runfile.write(cli.run_file, msgspec.structs.replace(run, broker_pid=os.getpid()))
    try:
        cli("token", "revoke", "bus:gus.default", code=3)
    finally:
        runfile.write(cli.run_file, run)
    asyncio.run(publish(made, subject="gus:vigil:t1"))
    kept = Path(made["seed_file"]).read_bytes()
    cli("token", "revoke", "bus:gus.default")
    assert not Path(made["seed_file"]).exists()
    Path(made["seed_file"]).write_bytes(kept)
    with pytest.raises(nats.errors.Error):
        asyncio.run(publish(made, subject="gus:vigil:t1"))
    Path(made["seed_file"]).unlink()
