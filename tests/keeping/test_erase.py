"""Erasing a person: gone from every file, resumable, safe while everything runs (SPEC X-8, S17)."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from tests.support import hands_records, timers
from tests.support.canaries import written
from tests.support.channels import channel_of
from tests.support.cli import Cli, eventually, running_vigil
from tests.support.examples import repeats
from tests.support.pauses import pauses
from tests.support.pictures import png
from tests.support.receiver import running_receiver, status
from tests.support.stack import Stack
from tests.support.world import World, running_world
from vigil import crash
from vigil.backup import reach
from vigil.bus.bus import Bus
from vigil.channels import pairs
from vigil.channels.push import subscriptions
from vigil.channels.push.subscriptions import Subscription
from vigil.cli.admin import erase as erasing
from vigil.cli.admin import operator
from vigil.clock import SystemClock
from vigil.contracts import (
    BoardEntry,
    Control,
    ControlPayload,
    DeadLetter,
    Dispatch,
    Start,
    decode_board,
    encode,
)
from vigil.crash import POINTS
from vigil.erasure import blocks, erase, residue, theirs
from vigil.erasure.erase import Eraser
from vigil.errors import InvalidInput
from vigil.marks import erasure
from vigil.settings import config
from vigil.subjects import SessionKey

USER = "CANARYuser"
OTHER = "bob"
TEXT = "CANARYtext"
POINTS_HERE = [point for point in POINTS if point.startswith("erase.")]
KILLS = repeats(1, fast=len(POINTS_HERE))
"""One after the other in the same home, before it is let to the end: `make chaos` begins anew for
each."""
NOTHING: Any = lambda step, done: None  # noqa: E731


def canaries(home: Path) -> list[str]:
    """Return every file under `home` that holds one, in its bytes or in its name; of a log with
    the first line that does."""
    found = [path for path in home.rglob("*") if path.is_file() and holds_one(path)]
    return sorted(path.relative_to(home).as_posix() + _line_of(path) for path in found)


def _line_of(path: Path) -> str:
    if path.suffix != ".log":
        return ""
    lines = path.read_text("utf-8", "replace").splitlines()
    return next((f": {line}" for line in lines if "CANARY" in line), "")


def holds_one(path: Path) -> bool:
    """Whether there is one in the file; a draft that was renamed just now holds none."""
    try:
        return "CANARY" in path.name or b"CANARY" in written(path)
    except FileNotFoundError:
        return False


# ---------------------------------------------------------------- a person with a past


def with_a_past(cli: Cli) -> None:
    """Leave traces of every kind, and the person's token in a file `theirs`."""
    token = str(cli.json("token", "create", "--user", USER)["token"])
    (cli.home / "theirs").write_text(token)
    revoked = str(cli.json("token", "create", "--user", USER, "--name", "CANARYphone")["token"])
    cli("token", "revoke", revoked)
    cli("token", "create", "--user", USER, "--bus", "--name", "CANARYprogram")
    mine = Cli(cli.home, VIGIL_TOKEN=token, VIGIL_URL=cli.run_state.url)
    mine("send", f"{TEXT} hello", "--thread", "CANARYthread")
    for n in range(3):
        mine("memory", "save", f"{TEXT} is fond of CANARYfood {n}", "--source", "CANARYsource")
    mine("send", "remind me in 5000 seconds to feed the CANARYcat", "--thread", "t1")
    mine("send", "check back in 1 seconds about CANARYoven", "--thread", "t2")
    for n in range(3):  # each voids the one before, whose schedule is purged
        mine("send", f"check back in {3000 + n} seconds about CANARYgarden", "--thread", "t3")
    settings, now = config.load({}, home=cli.home), datetime.now(UTC)
    address = "CANARYmail@b.example"
    operator.run(settings, lambda bus: pairs.ask_for(bus, "post", USER, address, "ABCDE", now))
    browser = Subscription(user=USER, endpoint="https://push.example/CANARY", p256dh="", auth="",
                           name="CANARYbrowser", at=now)  # fmt: skip
    operator.run(settings, lambda bus: subscriptions.store(bus, browser))
    with httpx2.Client(base_url=cli.run_state.url) as http:
        http.headers["authorization"] = f"Bearer {token}"
        key = f"{USER}:vigil:t1"
        for _ in range(2):
            body = {"text": f"{TEXT} keyed", "idempotency_key": "CANARYkey"}
            http.post(f"/api/sessions/{key}/messages", json=body).raise_for_status()
        for name, fill in (("CANARYnamed", b"CANARYkept"), ("CANARYloose", b"CANARYuploaded")):
            made = http.post(
                "/api/attachments", params={"name": name}, content=png(1, 1, fill=fill)
            )
            if name == "CANARYnamed":
                body = {"text": "see", "attachments": [made.json()["hash"]]}
                http.post(f"/api/sessions/{key}/messages", json=body).raise_for_status()
        trusted = {"source": "url:https://example.org/CANARYpage"}
        http.post("/api/trust", json=trusted).raise_for_status()
        event = {"specversion": "1.0", "id": "CANARYid", "source": "/CANARYsource",
                 "type": "CANARYtype", "subject": key, "data": {"x": TEXT}}  # fmt: skip
        http.post(
            "/api/events", json=event, headers={"content-type": "application/cloudevents+json"}
        ).raise_for_status()
    eventually(lambda: "Agent follow-up" in mine("tail", "session", f"{USER}:vigil:t2",
                                                 "--no-follow").stdout)  # fmt: skip


def of_another(cli: Cli) -> tuple[str, str]:
    """Return what somebody else has: records and open timers."""
    records = cli("tail", "session", "me:vigil:t1", "--no-follow").stdout
    assert "cat" in cli("memory", "search", "pets").stdout
    return records, cli("timers", "me:vigil:t1", "--json").stdout


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a past, at rest: the broker has written its indexes, and everything was used."""
    with running_vigil(tmp_path_factory.mktemp("erase") / "home") as cli:
        # Before the person: their signals are surely stored when this one's are removed.
        cli("send", "hello from another", "--thread", "t1")
        cli("send", "remind me in 4000 seconds to stretch", "--thread", "t1")
        cli("memory", "save", "has a cat and other pets")
        with_a_past(cli)
    plant_on_the_bus(cli)
    plant_files(cli.home)
    assert len(canaries(cli.home)) >= 5
    assert {name.split("/")[2] for name in canaries(cli.home) if name.startswith("memory/")} == {
        "memory.db", "vectors",
    }  # fmt: skip
    return cli.home


@pytest.fixture
def rested(seed: Path, tmp_path: Path) -> Cli:
    """A copy of that home; nothing runs in it."""
    # Keeps holes: the vectors' files are large and empty.
    subprocess.run(["cp", "-a", str(seed), str(tmp_path / "home")], check=True)
    return Cli(tmp_path / "home")


@pytest.fixture
def past(rested: Cli) -> Iterator[Cli]:
    """The same, running."""
    with running_vigil(rested.home) as cli:
        yield cli


STATES = 45
"""Of one job: more than the board keeps, so the broker removed some by itself."""


async def plant_work(bus: Bus) -> None:
    """What the person's work leaves: a session of the cortex, and its states on the board."""
    job = replace(hands_records.JOB, goal=TEXT, session_key=f"{USER}:vigil:_planner-1")
    child = SessionKey.parse(job.session_key)
    payload = ControlPayload(op="start", start=Start(prompt=f"{TEXT} to do"))
    start = Control(id="s", session_key=str(child), created_at=job.created_at, payload=payload)
    await bus.publish(child.in_event("control"), encode(start))
    for who, text in ((USER, TEXT), (OTHER, "theirs")):
        key = SessionKey(who, "vigil", "t1")
        for turn_seq in range(STATES):
            entity = replace(job, session_key=str(key), goal=text, error=f"{text} {turn_seq}")
            entry = BoardEntry(entity=entity, turn_seq=turn_seq, at=job.created_at)
            await bus.publish(key.board("job", job.id), encode(entry))


def plant_files(home: Path) -> None:
    """Leave in the workspaces what is hard to remove, and what isn't the person's."""
    theirs = home / "workspaces" / "vigil" / USER
    (theirs / "closed" / "deep").mkdir(parents=True)
    (theirs / "notes.txt").write_text(TEXT)
    (theirs / "closed" / "deep" / "CANARYname").write_text(TEXT)
    (theirs / "elsewhere").symlink_to(home / "workspaces" / "vigil" / OTHER)
    (theirs / "closed" / "deep" / "CANARYname").chmod(0)
    (theirs / "closed").chmod(0)
    theirs.with_name(f"{USER}.marks.json").write_text('{"paths": ["CANARYname"]}')
    others = home / "workspaces" / "vigil" / OTHER
    others.mkdir()
    (others / "kept.txt").write_text("theirs")


def plant_on_the_bus(cli: Cli) -> None:
    """Records that need a fault, or another's hand, to come about."""

    async def plant() -> None:
        from vigil.settings import switches

        settings = config.load({}, home=cli.home)
        async with reach.admin(settings) as reached:
            bus, key, now = reached.bus, SessionKey(USER, "vigil", "t9"), datetime.now(UTC)
            letter = DeadLetter(id="d", service="cortex", stream="SESSIONS", subject=key.in_user,
                                seq=1, cause=TEXT, data=TEXT.encode(), at=now)  # fmt: skip
            await bus.publish(key.dead("cortex"), encode(letter))
            order = Dispatch(
                effect_id="e", session_key=str(key), channel="CANARYchannel", said_seq=1, at=now
            )
            await bus.publish(key.send("e"), encode(order))
            await bus.publish(f"event.{USER}.CANARYprogram", TEXT.encode())
            await plant_work(bus)
            await switches.pause(bus, at=now, by=USER)
            await switches.pause(bus, at=now, by=OTHER)
            await switches.resume(bus)

    asyncio.run(plant())


# ---------------------------------------------------------------- the proof


def test_no_file_holds_a_canary_after_erasing_what_runs(past: Cli) -> None:
    """X-8, S17: texts, names in subjects, timers, tokens, keys, logs; others keep everything."""
    before = of_another(past)
    outcome = past.json("erase", "--user", USER, "--yes", "--no-wait", code=None)
    assert outcome["files"] in ("clean", "pending")
    assert {r["kind"] for r in outcome["left"]} <= {"index"}
    assert outcome["deleted"]["SESSIONS"] > 20
    # What EVENTS held went when it was taken in.
    streams = {"SESSIONS", "SYSTEM", "BOARD", "TIMERS", "DEAD", "SIGNALS", "MEMORIES"}
    assert outcome["deleted"].keys() >= streams
    assert outcome["memory_replicas"] == 1
    assert outcome["credentials"] == [f"{USER}.CANARYprogram"]
    assert of_another(past) == before
    past.end()
    assert canaries(past.home) == []
    assert (past.home / "workspaces" / "vigil" / OTHER / "kept.txt").read_text() == "theirs"
    assert asyncio.run(board_of_another(past)) == STATES - 1
    assert past.json("erase", "--user", USER, "--yes")["files"] == "clean"
    assert canaries(past.home) == []
    with running_vigil(past.home) as again:  # replayed from the start: nothing reappears
        assert of_another(again) == before
        again("send", "and I go on", "--thread", "t1")
    assert canaries(past.home) == []


async def board_of_another(cli: Cli) -> int:
    """Return the newest state of somebody else's job."""
    async with reach.admin(config.load({}, home=cli.home)) as reached:
        subject = SessionKey(OTHER, "vigil", "t1").board("job", hands_records.JOB.id)
        found = await reached.bus.get_last("BOARD", subject)
        assert found is not None
        return decode_board(found.data).turn_seq


def test_erasing_what_does_not_run_is_verified_at_once(rested: Cli) -> None:
    """X-8: the broker is started for it; afterwards its indexes are written, too."""
    done = rested("erase", "--user", USER, "--yes")
    assert "no file under the home names them any more" in done.stdout
    assert "Backups made before still hold the data" in done.stderr
    assert "another spelling" not in done.stderr
    assert canaries(rested.home) == []


@pytest.mark.repeated
@pytest.mark.parametrize("first", range(0, len(POINTS_HERE), KILLS))
def test_killed_at_each_step_it_resumes(rested: Cli, tmp_path: Path, first: int) -> None:
    """X-8, S17: whatever was done by then, the same command again finishes it. X-9: until then no
    backup is made: half a person in one would come back."""
    backup = tmp_path / "b.tar"
    for point in POINTS_HERE[first : first + KILLS]:
        killed = rested("erase", "--user", USER, "--yes", code=None, VIGIL_CRASH_AT=f"{point}:1")
        assert killed.returncode == crash.EXIT_CODE, point
        assert canaries(rested.home), point
    assert "being erased" in rested("backup", str(backup), code=1).stderr
    assert rested.json("erase", "--user", USER, "--yes")["files"] == "clean"
    assert canaries(rested.home) == []
    rested("backup", str(backup))
    assert b"CANARY" not in backup.read_bytes()


def test_until_it_is_finished_the_person_is_refused(past: Cli) -> None:
    """X-8, S17: killed before the tokens ended: they open nothing, on what goes on running."""
    killed = past("erase", "--user", USER, "--yes", code=None, VIGIL_CRASH_AT="erase.marked:1")
    assert killed.returncode == crash.EXIT_CODE
    with httpx2.Client(base_url=past.run_state.url) as http:
        http.headers["authorization"] = f"Bearer {(past.home / 'theirs').read_text()}"
        answer = http.post(f"/api/sessions/{USER}:vigil:t1/messages", json={"text": TEXT})
        assert answer.status_code == 403
        assert "being erased" in answer.json()["detail"]
        http.headers["authorization"] = f"Bearer {(past.home / 'token').read_text().strip()}"
        answer = http.post(f"/api/sessions/{USER}:vigil:t1/messages", json={"text": TEXT})
        assert answer.status_code == 403
        assert http.get("/api/me").status_code == 200
    (past.home / "theirs").unlink()
    past("erase", "--user", USER, "--yes", "--no-wait", code=None)
    past.end()
    assert canaries(past.home) == []


def test_a_file_that_names_them_and_is_not_ours_is_told(rested: Cli) -> None:
    """X-8: what a person wrote isn't changed, and what can't be proved isn't claimed."""
    (rested.home / "vigil.toml").write_text(f'[people.{USER}]\ntimezone = "UTC"\n')
    stray = rested.home / "nats" / "data" / "old.blk"
    stray.write_bytes(f"session.vigil.{USER}.t1.turn".encode())
    outcome = rested.json("erase", "--user", USER, "--yes", code=1)
    assert outcome["files"] == "not clean"
    assert {(r["file"], r["kind"]) for r in outcome["left"]} == {
        ("vigil.toml", "settings"), ("nats/data/old.blk", "records"),
    }  # fmt: skip
    stray.unlink()
    assert rested.json("erase", "--user", USER, "--yes")["files"] == "clean"


def test_a_name_in_a_record_of_somebody_else_stays_and_is_told(rested: Cli) -> None:
    """X-8: an admin ordered another's dead letter to be tried again, and is erased."""

    async def plant() -> None:
        async with reach.admin(config.load({}, home=rested.home)) as reached:
            subject = SessionKey(OTHER, "vigil", "t1").dead("ended")
            await reached.bus.publish(subject, b'{"action":"requeued","by":"theboss"}')

    asyncio.run(plant())
    done = rested("erase", "--user", "theboss", "--yes")
    assert "but for what isn't Vigil's to change" in done.stdout
    assert "another spelling" in done.stderr, "nothing was deleted"
    (left,) = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert "/DEAD/msgs/" in left
    assert left.endswith(f" (1): {residue.WHY['others']}")


async def test_consumers_beyond_the_brokers_first_page_are_found(bare: Stack) -> None:
    """X-8: a consumer's file has its filter, and with it the name."""
    admin = await bare.bus("admin")
    for n in range(260):
        user = "ann" if n % 130 == 0 else "bob"
        config = {"name": f"c{n:03}", "ack_policy": "none", "filter_subject": f"signal.*.{user}.>",
                  "inactive_threshold": 60_000_000_000, "mem_storage": True}  # fmt: skip
        request = {"stream_name": "SIGNALS", "config": config, "action": "create"}
        subject = f"CONSUMER.CREATE.SIGNALS.c{n:03}.signal.*.{user}.>"
        await admin.api(subject, request)
    await admin.api("CONSUMER.DELETE.SIGNALS.c001", {})
    found = await erasing._consumers(admin, "signal.*.bob.>")
    assert len(found) == 257
    assert await erasing._consumers(admin, "signal.*.ann.>") == ["c000", "c130"]


async def purge_signals(cli: Cli) -> None:
    """Remove the person's signals as their age would: without overwriting them."""
    async with reach.admin(config.load({}, home=cli.home)) as reached:
        filter_ = f"signal.*.{USER}.>"
        purged = await reached.bus.api("STREAM.PURGE.SIGNALS", {"filter": filter_})
        assert purged["purged"] > 10


def test_what_the_broker_removed_by_itself_is_overwritten(rested: Cli) -> None:
    """X-8: only its files have it, so it's done while the broker is stopped; others stay whole."""
    asyncio.run(purge_signals(rested))
    before = asyncio.run(everything(rested))
    with running_vigil(rested.home) as cli:
        outcome = cli.json("erase", "--user", USER, "--yes", "--no-wait", code=1)
        assert outcome["files"] == "not clean"
        left = {(r["file"].split("/")[5], r["kind"]) for r in outcome["left"]}
        assert ("SIGNALS", "records") in left
    assert rested.json("erase", "--user", USER, "--yes")["files"] == "clean"
    assert canaries(rested.home) == []
    after = asyncio.run(everything(rested))
    assert before <= after
    with running_vigil(rested.home) as cli:
        cli("send", "still there?", "--thread", "t1")


async def everything(cli: Cli) -> set[tuple[str, int, str, bytes]]:
    """Return every record of others in the streams that are logs, as stored."""
    async with reach.admin(config.load({}, home=cli.home)) as reached:
        return {
            (stream, message.seq, message.subject, message.data)
            for stream in ("SESSIONS", "SYSTEM", "SIGNALS", "DEAD")
            for message in await reached.bus.read(stream, [">"])
            if USER not in message.subject
        }


def test_the_form_of_every_record_is_known(rested: Cli) -> None:
    """X-8: the checksum of each record of a real store is the one that we compute."""
    found = [
        (record, blocks.key_of(path))
        for path in (rested.home / "nats" / "data").rglob("*.blk")
        for record in blocks.records(path)
    ]
    assert len(found) > 50
    assert all(record.is_sound(key) for record, key in found)
    record, key = found[0]
    changed = record.data[:30] + bytes([record.data[30] ^ 1]) + record.data[31:]
    assert not blocks.BlockRecord(0, changed).is_sound(key)


def test_logs_are_mended_in_place(tmp_path: Path) -> None:
    """X-8: lines that name the person tell nothing any more; others, and look-alikes, stay."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "up.log"
    ours = '{"action": "delivery.dead", "session": "me:vigil:t1", "channel": "secret"}\n'
    kept = '{"session": "bob:vigil:me"} tell me more\n'
    log.write_text(kept + ours + kept + "session=me:vigil:t2 without an end")
    assert residue.mend_logs(tmp_path, "me") == 2
    lines = log.read_text().splitlines(keepends=True)
    assert lines[0] == lines[2] == kept
    assert json.loads(lines[1])["erased"].strip("x") == ""
    assert [len(line) for line in lines[1::2]] == [len(ours), 34]
    assert residue.scan(tmp_path, "me") == []


def test_what_a_fault_says_of_the_person_is_mended(tmp_path: Path) -> None:
    """X-8: in words, too, as a service tells an error; a word like it, and another's row, stay."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "up.log"
    ours = [
        '{"row": "1f", "error": "ann is being erased", "event": "can\'t look"}\n',
        '{"action": "library", "event": "posted to \\"ann\\": refused"}\n',
    ]
    kept = '{"row": "ann", "error": "joann, ann-b and mann aren\'t there", "level": "info"}\n'
    log.write_text(kept.join(["", *ours, ""]))
    assert [one.count for one in residue.scan(tmp_path, "ann")] == [2]
    assert residue.mend_logs(tmp_path, "ann") == len(ours)
    lines = log.read_text().splitlines(keepends=True)
    assert lines[0] == lines[2] == lines[4] == kept
    assert all(json.loads(line)["erased"].strip("x") == "" for line in lines[1::2])
    assert residue.scan(tmp_path, "ann") == []


def test_a_name_across_two_pieces_is_found_once(tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir()
    data = b"-" * (residue.WINDOW - 9) + b" session.vigil.ann.t1 " + b"-" * residue.WINDOW
    (tmp_path / "nats" / "1.blk").write_bytes(data)
    (found,) = residue.scan(tmp_path, "ann")
    assert (found.count, found.kind) == (1, "records")


def test_a_name_behind_a_hole_is_found_and_the_hole_is_not_read(tmp_path: Path) -> None:
    """The room that is set aside is nothing else; a terabyte of it would take a quarter hour."""
    path = tmp_path / "reserve"
    with path.open("wb") as file:
        file.seek(1 << 40)
        file.write(b" ann ")
        file.truncate(1 << 41)
    assert [(one.file, one.count) for one in residue.scan(tmp_path, "ann")] == [("reserve", 1)]


@pytest.mark.parametrize("user", ["*", ">", "a.b", "", "a b"])
def test_a_wildcard_is_nobody(user: str) -> None:
    """S4, S17: the person `*` would be everybody."""
    with pytest.raises(InvalidInput):
        theirs.filters_of(user)


# ---------------------------------------------------------------- while everything runs


async def erased(bus: Bus, user: str, quiet_s: float = erase.QUIET_S) -> Eraser:
    eraser = Eraser(bus, user, SystemClock(), NOTHING)
    mark = await eraser.run(quiet_s=quiet_s)
    await erasure.end(bus, user, mark, datetime.now(UTC))
    return eraser


async def until_refused(world: World) -> None:
    assert world.stack.contexts

    async def is_refused() -> bool:
        return await erasure.find(world.admin, USER) is not None

    await timers.until(is_refused)


async def test_a_turn_that_runs_and_timers_that_wait_do_not_bring_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S17: erased while the model thinks, follow-ups are due, and the person goes on writing."""
    async with running_world(tmp_path, monkeypatch, SystemClock(), False,
                             model={"rehearsal_word_ms": 20}) as world:  # fmt: skip
        people = [await world.person(f"{USER}:vigil:t{n}", has_socket=n % 2 == 0) for n in range(6)]
        bob = await world.person(f"{OTHER}:vigil:t1")
        await bob.exchange("remind me in 3600 seconds to call")
        for n, person in enumerate(people):
            await person.exchange(f"check back in {n + 1} seconds about {TEXT}")
        writing = [asyncio.create_task(write_on(person.http, person.key)) for person in people]
        await asyncio.gather(*(person.say(f"a long answer please {TEXT}") for person in people))
        eraser = await erased(world.admin, USER)
        assert eraser.swept.deleted["SESSIONS"] > 30
        codes = await asyncio.wait_for(asyncio.gather(*writing), 10)
        assert all(code in (401, 403) for code in codes)
        assert await eraser.left() == {}
        # Everybody else goes on, and nothing of the person's is still held by a service.
        await bob.exchange("hello")
        for consumer in ("cortex-wake", "scheduler-turns", "delivery-turns"):
            assert await is_done(world.admin, "SESSIONS", consumer)
        assert len(await bob.timers()) == 1
        assert await eraser.left() == {}


async def write_on(http: httpx2.AsyncClient, key: str) -> int:
    """Write until it is refused; return how."""
    pause_s = pauses()
    while True:
        answer = await http.post(f"/api/sessions/{key}/messages", json={"text": TEXT})
        if answer.status_code not in (202, 429):
            return answer.status_code
        await asyncio.sleep(next(pause_s))


async def is_done(bus: Bus, stream: str, consumer: str) -> bool:
    async def nothing_left() -> bool:
        info = await bus.api(f"CONSUMER.INFO.{stream}.{consumer}", {})
        return bool(info["num_pending"] + info["num_ack_pending"] == 0)

    await timers.until(nothing_left, timeout_s=15)
    return True


async def test_the_same_name_may_come_back_as_somebody_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: the tombstone is a hash and the time, and closes nobody out."""
    async with running_world(tmp_path, monkeypatch, SystemClock(), False) as world:
        person = await world.person(f"{USER}:vigil:t1", has_socket=False)
        await person.exchange("hello")
        await erased(world.admin, USER, quiet_s=0.5)
        tombstone = await erasure.find(world.admin, USER)
        assert tombstone is not None
        assert tombstone.done_at is not None
        raw = await world.admin.get_last("KV_CONFIG", f"$KV.CONFIG.erase.{erasure.hash_of(USER)}")
        assert raw is not None
        assert b"CANARY" not in raw.data
        again = await world.person(f"{USER}:vigil:t1", has_socket=False)
        assert await again.transcript() == []
        await again.exchange("hello")
        assert len(await again.transcript()) == 2


async def test_a_wake_whose_event_is_gone_does_not_keep_the_session_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: an event deleted between its wake and its reading; the session closes all the same."""
    async with running_world(tmp_path, monkeypatch, SystemClock(), False,
                             sessions={"idle_release_s": 0.3}) as world:  # fmt: skip
        person = await world.person("ann:vigil:t1", has_socket=False)
        await person.exchange("hello")
        await person.until_released()
        await world.stack.stop("cortex")
        seq = await person.say("soon gone")
        await world.admin.api("STREAM.MSG.DELETE.SESSIONS", {"seq": seq})
        await world.stack.start("cortex")
        other = await person.say("and on")
        await person.talk.ended(other)
        await person.until_released()
        assert await is_done(world.admin, "SESSIONS", "cortex-wake")


async def test_a_webhook_that_retries_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S17: the receiver refuses, the next try is due soon; once erased nothing more is sent."""
    async with running_receiver(status(500)) as receiver:
        ops = channel_of(receiver, attempts_max=100, backoff_base_s=0.3, backoff_cap_s=0.3)
        async with running_world(
            tmp_path, monkeypatch, SystemClock(), False,
            channels={"ops": ops}, people={USER: {"channel": "ops"}},
        ) as world:  # fmt: skip
            person = await world.person(f"{USER}:vigil:t1", has_socket=False)
            await person.exchange(f"check back in 1 seconds about {TEXT}")
            await world.until(lambda: len(receiver.requests) >= 2)
            eraser = await erased(world.admin, USER)
            count = len(receiver.requests)
            assert await is_done(world.admin, "SESSIONS", "delivery-sends")
            await erased(world.admin, USER, quiet_s=1.5)
            assert len(receiver.requests) == count
            assert await eraser.left() == {}


# ---------------------------------------------------------------- an external broker


def test_an_external_broker_is_not_claimed_to_be_clean(past: Cli, tmp_path: Path) -> None:
    """X-8: its files are elsewhere; the command says so, and still empties the streams."""
    away = Cli(tmp_path / "away", NATS_URL=past.run_state.nats_url)
    shutil.copytree(past.home / "nkeys", away.home / "nkeys")
    done = away("erase", "--user", USER, "--yes")
    assert "were not looked at" in done.stdout
    past.end()
    assert canaries(past.home) != []  # its logs, and the programs' credentials of that home
    assert not [file for file in canaries(past.home) if file.endswith((".blk", ".db"))]
