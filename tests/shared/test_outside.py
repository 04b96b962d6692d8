"""Credentials of outside programs, and the broker that learns of them while it runs (SPEC P-7)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from pathlib import Path

import nats
import nats.errors
import pytest
from structlog.testing import capture_logs

from tests.support.programs import admit, connect, tell
from tests.support.provisioned import ONE_LOG
from tests.support.stack import Stack, running_broker
from vigil.broker import conf
from vigil.broker.conf import configuration, users
from vigil.broker.process import Broker, adopt_streams
from vigil.broker.provision import provision, provision_outside, remove_outside
from vigil.broker.reload import reload
from vigil.errors import ConfigError, InvalidInput, Unavailable
from vigil.outside.programs import Outside, permissions
from vigil.settings import credentials
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey

pytestmark = pytest.mark.usefixtures("own_broker")
KEY = SessionKey("ann", "vigil", "t1")


async def test_a_running_broker_learns_of_a_program(bare: Stack) -> None:
    """Services keep their connections and their place; programs before it go on."""
    gateway = await bare.bus("gateway")
    follower = await gateway.follow("SESSIONS", ["session.>"], 1)
    first = await connect(bare, await admit(bare, "ann"))
    assert (await first.js.publish("event.ann.ci", b"1")).seq == 1
    second = await connect(bare, await admit(bare, "bob", "other"))
    for program, subject in ((first, "event.ann.ci"), (second, "event.bob.other")):
        assert (await program.js.publish(subject, b"2")).stream == "EVENTS"
    await gateway.publish(KEY.in_user, b"still here")
    message = await follower.next_within(5)
    assert message is not None
    assert follower.restarts == 0
    assert gateway.violations == []
    await follower.close()
    await first.close()
    await second.close()


async def test_a_revoked_program_is_cut_off(bare: Stack) -> None:
    made = await admit(bare, "ann")
    program = await connect(bare, made)
    closed = asyncio.Event()

    async def on_close() -> None:
        closed.set()

    program.nc._closed_cb = on_close
    credentials.drop_outside(bare.settings.credentials, made)
    await tell(bare)
    admin = await bare.bus("admin")
    await remove_outside(admin, made)
    await remove_outside(admin, made)
    await asyncio.wait_for(closed.wait(), 5)
    assert not credentials.outside_seed(bare.settings.credentials, made).exists()
    again = credentials.make_outside(bare.settings.credentials, "ann", "ci")
    assert again.public_key != made.public_key
    with pytest.raises((nats.errors.Error, OSError)):
        await connect(bare, again)


async def test_a_program_is_known_after_a_restart(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as server:
        made = credentials.make_outside(tmp_path / "nkeys", "ann", "ci")
        admin = await server.admin()
        await provision_outside(admin, [made])
        await admin.close()
    async with running_broker(tmp_path) as server:
        nc = await nats.connect(
            server.url,
            nkeys_seed=str(credentials.outside_seed(tmp_path / "nkeys", made)),
            inbox_prefix=made.inbox.encode(),
        )
        assert (await nc.jetstream().publish("event.ann.ci", b"x")).seq == 1
        await nc.close()


async def test_signals_begin_when_the_credential_is_made(bare: Stack) -> None:
    """And provisioning again changes nothing."""
    admin = await bare.bus("admin")
    await admin.publish(KEY.signal("message.sent"), b"before")
    made = await admit(bare, "ann")
    await provision_outside(admin, [made])
    await admin.publish(KEY.signal("message.sent"), b"after")
    program = await connect(bare, made)
    signals = await program.js.pull_subscribe_bind(made.consumer.name, stream="SIGNALS")
    (message,) = await signals.fetch(5, timeout=1)
    assert message.data == b"after"
    await message.ack()
    await program.close()


def test_a_process_that_is_no_broker_of_ours_gets_no_signal(tmp_path: Path) -> None:
    """A pid in a file may belong to somebody else by now."""
    folder = tmp_path / "nats"
    folder.mkdir()
    text = configuration(
        Nats(), store=folder, port=1, publics=credentials.ensure(tmp_path / "nkeys")
    )
    (folder / "nats.conf").write_text(text)
    (folder / "nats.log").write_text("")
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(Unavailable, match="no broker of this home"):
            reload(tmp_path, stranger.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    with pytest.raises(Unavailable, match="no broker"):
        reload(tmp_path, stranger.pid)


async def test_two_at_once_lose_no_program(bare: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-4: the slower one read the credentials before the faster one made its own."""
    folder = bare.settings.credentials
    has_read, may_write = threading.Event(), threading.Event()
    real = credentials.write_private

    def slow(path: Path, data: bytes) -> None:
        if path.name == "nats.conf" and not has_read.is_set():
            has_read.set()
            may_write.wait(10)
        real(path, data)

    monkeypatch.setattr(credentials, "write_private", slow)
    slower = asyncio.create_task(tell(bare))
    await asyncio.to_thread(has_read.wait, 10)
    made = credentials.make_outside(folder, "ann", "ci")
    faster = asyncio.create_task(tell(bare))
    await asyncio.wait([faster], timeout=0.5)  # without a lock it is through by then
    may_write.set()
    await asyncio.gather(slower, faster)
    assert made.public_key in (bare.settings.home / "nats" / "nats.conf").read_text()


async def test_a_configuration_that_the_broker_refuses(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one stays in force, and the person is told."""
    monkeypatch.setattr(conf, "users", lambda publics: [{"nkey": "no key"}])
    pid = bare.broker.pid
    assert pid is not None
    with pytest.raises(ConfigError, match="refused"):
        await asyncio.to_thread(reload, bare.settings.home, pid)
    admin = await bare.bus("admin")
    assert (await admin.publish(KEY.in_user, b"still here")).seq == 1


async def test_streams_of_a_version_without_accounts_are_adopted(tmp_path: Path) -> None:
    """SPEC X-5: an upgrade loses nothing: messages, consumers and their place."""
    folder = tmp_path / "nats"
    publics = credentials.ensure(tmp_path / "nkeys")
    server = Broker(ONE_LOG, home=tmp_path)
    folder.mkdir(mode=0o700)
    old = json.loads(
        configuration(Nats(), store=folder / "data", port=server.port, publics=publics)
    )
    del old["accounts"]
    (folder / "nats.conf").write_text(
        json.dumps(old | {"authorization": {"users": users(publics)}})
    )
    await server._spawn()
    admin = await server.admin()
    await provision(admin, nats=ONE_LOG)
    for number in range(5):
        await admin.publish(KEY.in_user, str(number).encode())
    await admin.close()
    await server.stop()
    assert (folder / "data" / "jetstream" / "$G").exists()
    async with running_broker(tmp_path) as upgraded:
        admin = await upgraded.admin()
        assert [m.data for m in await admin.read("SESSIONS", ["session.>"])] == [
            b"0", b"1", b"2", b"3", b"4",
        ]  # fmt: skip
        info = await admin.api("CONSUMER.INFO.SESSIONS.cortex-wake", {})
        assert info["num_pending"] == 5
        await admin.close()
    assert not (folder / "data" / "jetstream" / "$G").exists()


def test_streams_are_never_adopted_over_others(tmp_path: Path) -> None:
    for name in ("$G", "VIGIL"):
        (tmp_path / "jetstream" / name).mkdir(parents=True)
    with capture_logs() as logs:
        adopt_streams(tmp_path)
    assert [line["action"] for line in logs] == ["broker.left_alone"]
    assert {path.name for path in (tmp_path / "jetstream").iterdir()} == {"$G", "VIGIL"}


def test_credentials_are_files_for_the_owner_only(tmp_path: Path) -> None:
    made = credentials.make_outside(tmp_path, "ann", "ci")
    assert credentials.outside(tmp_path) == [made]
    seed = credentials.outside_seed(tmp_path, made)
    assert {path.stat().st_mode & 0o777 for path in seed.parent.iterdir()} == {0o600}
    assert seed.read_text().strip() not in (seed.parent / "ann.ci.json").read_text()
    with pytest.raises(InvalidInput, match="there already"):
        credentials.make_outside(tmp_path, "ann", "ci")
    (seed.parent / "bob.x.json").write_text('{"user": "a.b"}')
    with pytest.raises(ConfigError, match=r"bob\.x\.json is no credential"):
        credentials.outside(tmp_path)


@pytest.mark.parametrize("part", ["", ".", "*", ">", "a.b", "a b", "a/b", "..", "x" * 65, "ä"])
def test_names_that_could_change_a_subject_or_a_path(tmp_path: Path, part: str) -> None:
    """SPEC S-2."""
    for user, name in ((part, "ci"), ("ann", part)):
        with pytest.raises(InvalidInput):
            credentials.make_outside(tmp_path, user, name)
    assert list(tmp_path.iterdir()) == []


def test_what_a_credential_may_do_is_a_list() -> None:
    """No wildcard that reaches another's: neither by user, nor by name."""
    one = Outside(user="ann", name="ci", public_key="U")
    other = Outside(user="ann", name="c", public_key="U")
    allowed = permissions(one)
    assert allowed["publish"][0] == "event.ann.ci"
    assert not set(allowed["publish"]) & set(permissions(other)["publish"])
    assert one.consumer.name != other.consumer.name
    assert allowed["subscribe"] == [f"{one.inbox}.>", "signal.*.ann.>"]
    assert not any(subject.startswith("$JS.API.CONSUMER.CREATE") for subject in allowed["publish"])
