"""Services that begin anew with a changed configuration, while all else goes on."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import AsyncMock

import msgspec
import pytest

from tests.support.stack import Stack, running_stack
from tests.support.talk import PATIENCE_S
from vigil import runtime
from vigil.background.end import end_tasks
from vigil.errors import ConfigError, InvalidInput, Unavailable
from vigil.fields import secrets
from vigil.local.runners import TaskRunner
from vigil.runtime import Context
from vigil.settings import config
from vigil.settings.config import Config, Settings
from vigil.settings.live import followed, renewal, stamps
from vigil.settings.live.renewal import AT_START, BEGIN_ANEW, FOLLOWED, changed_for, taken_in
from vigil.settings.live.stamps import Stamps
from vigil.settings.sections import Person

HOOK: Final = '[channels.{name}]\nkind = "webhook"\nurl = "https://hooks.example/{name}"\n'
PEOPLE: Final = '[people.ann]\ntimezone = "Asia/Tokyo"\n'
AGENT: Final = '[agents.kim]\nmodel = "{model}"\nauthority = "{authority}"\n'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(followed, "POLL_S", 0.01)
    monkeypatch.setattr(renewal, "IDLE_POLL_S", 0.01)
    return iter(())


def test_each_section_is_of_one_sort() -> None:
    """A new one has to say whether a running service takes it in."""
    sorts = [*BEGIN_ANEW, *FOLLOWED, *AT_START]
    assert sorted(sorts) == sorted(one.name for one in msgspec.structs.fields(Config))


def read(text: str, home: Path) -> Settings:
    (home / "vigil.toml").write_text(text)
    return config.load({}, home=home)


def test_who_thinks_has_nobody_begin_anew(tmp_path: Path) -> None:
    models = '[models.a]\nprovider = "openai"\nmodel = "a"\nbase_url = "http://127.0.0.1:1/v1"\n'
    before = read(models + AGENT.format(model="a", authority="act"), tmp_path).config
    other = read(models + AGENT.format(model="", authority="act"), tmp_path).config
    assert changed_for("cortex", before, other) == ()
    less = read(models + AGENT.format(model="a", authority="observe"), tmp_path).config
    assert changed_for("cortex", before, less) == ("agents",)
    assert changed_for("delivery", before, less) == ("agents",)  # whose mind tells what failed
    assert changed_for("memory", before, less) == ()
    agent = AGENT.format(model="a", authority="act")
    more = read(models + agent + HOOK.format(name="ops"), tmp_path).config
    assert changed_for("delivery", before, more) == ("channels",)
    assert changed_for("memory", before, more) == ()


def test_what_waits_for_the_start_waits(tmp_path: Path) -> None:
    """Prices, too, and with them who thinks: an agent keeps its model, or has that of all."""
    prices = "prices = [{ since = 2026-01-01, input = 1.0, output = 2.0 }]\n"
    model = '[models.a]\nprovider = "openai"\nmodel = "a"\nbase_url = "http://127.0.0.1:1/v1"\n'
    old = read("[gateway]\nport = 8000\n" + AGENT.format(model="", authority="act"), tmp_path)
    text = "[gateway]\nport = 9000\n" + model + AGENT.format(model="a", authority="off")
    plain = taken_in(old, old, read(text, tmp_path)).config
    assert (plain.gateway.port, plain.agents["kim"].model, set(plain.models)) == (8000, "a", {"a"})
    text = text.replace(model, model + prices)
    priced = taken_in(old, old, read(text + HOOK.format(name="ops"), tmp_path)).config
    assert (priced.agents["kim"].model, priced.agents["kim"].authority) == ("", "off")
    assert (set(priced.models), set(priced.channels)) == (set(), {"ops"})
    # What a service was started with otherwise than by the file stays, where that stays.
    own = msgspec.structs.replace(
        old, config=msgspec.structs.replace(old.config, people={"a": Person()})
    )
    assert set(taken_in(own, old, read(text, tmp_path)).config.people) == {"a"}
    # Prices that wait go on waiting when a model changes after them.
    now = taken_in(old, old, read(text, tmp_path))
    later = text.replace('model = "a"\nbase_url', 'model = "b"\nbase_url')
    assert taken_in(now, read(text, tmp_path), read(later, tmp_path)).config.models == {}


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 3000, "[gateway]\nport = " + "1" * 5000, "[" + "a." * 3000 + "b]\n="]
)
def test_what_can_not_be_read_is_refused_in_words(tmp_path: Path, text: str) -> None:
    """Whoever follows the file would end of anything else."""
    with pytest.raises(ConfigError, match=r"vigil\.toml: "):
        read(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[mailboxes.m]\ntoken_command = ["cat", "a\\u0000"]', r"mailboxes\.m\.token_command\[1\]"),
        ('[mcp.x]\ncommand = "cat"\nenv = { A = "\\u0000" }', r"mcp\.x\.env\.A"),
        ('[[grants]]\ntool = "shell"\nuser = "a\\u0000"', r"grants\[0\]\.user"),
        ('[executor]\nworkspaces = "/tmp/\\u0000"', r"executor\.workspaces"),
        ('[mcp.x]\ncommand = "cat"\nenv = { "A=B" = "1" }', r"\[mcp\.x\]: env"),
    ],
)
def test_what_is_no_path_argument_or_variable_is_refused_by_its_field(
    tmp_path: Path, text: str, field: str
) -> None:
    """It was taken, and what used it ended by an error that named nothing."""
    with pytest.raises(ConfigError, match=rf"vigil\.toml: {field}"):
        read(text, tmp_path)


def test_a_secret_is_text(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"sk-\0")
    with pytest.raises(InvalidInput, match="it has a NUL character"):
        secrets.of_file("token_file", "key", tmp_path)


@pytest.mark.parametrize("name", ["\0", "~nobody-of-this-name/key", "a" * 5000])
def test_a_secret_in_no_file_is_refused_in_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="can't be read"):
        secrets.of_file("token_file", name, tmp_path)


async def test_half_of_a_file_is_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It's read when it has been quiet, and not taken if it's written again while it's read."""
    one, two, three = (HOOK.format(name=name) for name in ("one", "two", "three"))
    file = tmp_path / "vigil.toml"
    writes = iter(["", one, one + two, None, None, None, None, None, "stop"])

    async def sleep(_: float) -> None:
        if (text := next(writes)) == "stop":
            raise asyncio.CancelledError
        if text is not None:
            file.write_text(text)

    def load(*args: object, home: Path) -> Settings:
        found = loaded({}, home=home)
        if "three" not in file.read_text():
            file.write_text(one + two + three)
        return found

    async def take(settings: Settings) -> None:
        taken.append(set(settings.config.channels) - {"push"})

    taken: list[set[str]] = []
    settings = read(one, tmp_path)
    loaded = config.load
    monkeypatch.setattr(config, "load", load)
    _slept_by(sleep, monkeypatch)
    with contextlib.suppress(asyncio.CancelledError):
        await followed.FollowedSettings(settings, take).follow()
    assert taken == [{"one", "two", "three"}]


async def test_all_of_a_process_look_once_at_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process at rest wakes once a second, and asks for the files once."""
    looks = asked = 0
    enough = asyncio.Event()

    def stamps_of(home: Path) -> Stamps:
        nonlocal looks
        if (looks := looks + 1) > 5:
            enough.set()
        return stamps.stamps_of(home)

    class Counted(followed.FollowedSettings):
        def _is_due(self, found: Stamps) -> bool:
            nonlocal asked
            asked += 1
            return super()._is_due(found)

    settings = read("", tmp_path)
    monkeypatch.setattr(followed, "stamps_of", stamps_of)
    following = [asyncio.create_task(Counted(settings, AsyncMock()).follow()) for _ in range(8)]
    async with asyncio.timeout(PATIENCE_S):
        await enough.wait()
    assert asked == 8 * looks
    await end_tasks(*following)


async def test_who_begins_to_follow_does_not_wait_for_a_look_that_is_further_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = asyncio.Event()

    async def take(_: Settings) -> None:
        taken.set()

    settings = read("", tmp_path)
    monkeypatch.setattr(followed, "POLL_S", 3600.0)
    first = asyncio.create_task(followed.FollowedSettings(settings, AsyncMock()).follow())
    await asyncio.sleep(0)
    monkeypatch.setattr(followed, "POLL_S", 0.01)
    second = asyncio.create_task(followed.FollowedSettings(settings, take).follow())
    (tmp_path / "vigil.toml").write_text(HOOK.format(name="one"))
    async with asyncio.timeout(PATIENCE_S):
        await taken.wait()
    await end_tasks(first, second)


async def test_all_of_a_process_read_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who begins anew isn't held up by all others."""
    monkeypatch.setattr(followed, "POLL_S", 1.0)
    settings = read("", tmp_path)
    following = [followed.FollowedSettings(settings, AsyncMock()) for _ in range(8)]
    (tmp_path / "vigil.toml").write_text(HOOK.format(name="one"))
    apart: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds:
            apart.append(seconds)
            raise asyncio.CancelledError

    _slept_by(sleep, monkeypatch)
    for one in following:
        with contextlib.suppress(asyncio.CancelledError):
            await one.follow()
    apart.sort()
    assert len(apart) == 8
    assert apart[0] >= 0.2
    assert apart[-1] < 1.0
    assert all(later - sooner > 0.05 for sooner, later in pairwise(apart))


def _slept_by(sleep: Callable[[float], Awaitable[None]], patch: pytest.MonkeyPatch) -> None:
    """Have who follows sleep so, also from one look to the next: that is by no seconds."""

    class Looks:
        def __init__(self, home: Path) -> None:
            self.home = home

        async def until(self, is_due: Callable[[Stamps], bool]) -> Stamps:
            while True:
                await sleep(0.0)
                if is_due(found := stamps.stamps_of(self.home)):
                    return found

    patch.setattr(followed, "_looks_at", Looks)
    loop = SimpleNamespace(time=lambda: 0.0)
    patch.setattr(followed, "asyncio", SimpleNamespace(sleep=sleep, get_running_loop=lambda: loop))


async def test_what_a_new_channel_sends_with_is_imported_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library may take seconds, and all services of a process have one loop."""
    there = tmp_path / "slow_kind"
    there.mkdir()
    (there / "section.py").write_text("class Slow:\n    pass\n")
    (there / "sender.py").write_text("import threading\nby = threading.get_ident()\n")
    monkeypatch.syspath_prepend(tmp_path)
    section = importlib.import_module("slow_kind.section")
    settings = read("", tmp_path)
    changed = msgspec.structs.replace(settings.config, channels={"slow": section.Slow()})
    for service in ("executor", "delivery"):
        assert "slow_kind.sender" not in sys.modules
        with_it = msgspec.structs.replace(settings, config=changed)
        await renewal.Renewal(service, settings)._take(with_it)
    assert sys.modules["slow_kind.sender"].by != threading.get_ident()


async def test_a_kind_of_which_nothing_is_imported_before_is_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is a module outside all packages, and one whose sender fails: who uses it tells."""
    (tmp_path / "lone_kind.py").write_text("class Lone:\n    pass\n")
    (tmp_path / "bad_kind").mkdir()
    (tmp_path / "bad_kind/section.py").write_text("class Bad:\n    pass\n")
    (tmp_path / "bad_kind/sender.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings = read("", tmp_path)
    for name, kind in (("lone_kind", "Lone"), ("bad_kind.section", "Bad")):
        channel = getattr(importlib.import_module(name), kind)()
        changed = msgspec.structs.replace(settings.config, channels={"new": channel})
        made = renewal.Renewal("delivery", settings)
        await made._take(msgspec.structs.replace(settings, config=changed))
        async with asyncio.timeout(PATIENCE_S):
            await made.wait(lambda: 0)
        assert made.settings.config.channels == {"new": channel}


async def test_who_works_in_another_home_takes_nothing_of_it_for_a_change(tmp_path: Path) -> None:
    """A story of an eval: with a person's models, and all else its own."""
    settings = read(AGENT.format(model="", authority="act"), tmp_path)
    (tmp_path / "story").mkdir()
    (tmp_path / "story/vigil.toml").write_text(HOOK.format(name="ops"))
    there = msgspec.structs.replace(settings, home=tmp_path / "story")
    made = renewal.Renewal("delivery", there)
    (tmp_path / "story/vigil.toml").write_text(HOOK.format(name="other"))
    following = asyncio.create_task(made.follow())
    async with asyncio.timeout(PATIENCE_S):
        await made.wait(lambda: 0)
    following.cancel()
    assert "kim" in made.settings.config.agents


async def test_a_change_before_anybody_follows_is_taken_in(tmp_path: Path) -> None:
    """While a service is loaded, or waits for its broker."""
    settings = read("", tmp_path)
    read(HOOK.format(name="early"), tmp_path)
    made = renewal.Renewal("delivery", settings)
    following = asyncio.create_task(made.follow())
    async with asyncio.timeout(PATIENCE_S):
        await made.wait(lambda: 0)
    following.cancel()
    assert "early" in made.settings.config.channels


class Service:
    """A service that tells with what it began, and is refused a channel called `bad`."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[tuple[Context, set[str]]] = asyncio.Queue()
        self.ended = 0
        self.in_hand = 0
        self.outage = asyncio.Event()

    async def serve(self, context: Context) -> None:
        names = set(context.settings.config.channels) - {"push"}
        if "bad" in names:
            raise ConfigError("channels.bad.url: leads nowhere")
        context.in_hand = lambda: self.in_hand
        context.ready.set()
        self.begun.put_nowait((context, names))
        try:
            await self.outage.wait()
            self.outage.clear()
            raise Unavailable("the broker went")
        finally:
            self.ended += 1

    async def next(self) -> tuple[Context, set[str]]:
        async with asyncio.timeout(PATIENCE_S):
            return await self.begun.get()


async def running(
    bare: Stack, home: Path, service: Service | None = None
) -> tuple[Service, asyncio.Task[None]]:
    service = service or Service()
    settings = msgspec.structs.replace(
        bare.settings, config=config.load({}, home=home).config, home=bare.settings.home
    )
    run = runtime.run("delivery", settings, bare.broker.url, serve=service.serve)
    return service, asyncio.create_task(run)


async def test_a_file_that_cannot_be_read_is_told_where_services_are_shown(bare: Stack) -> None:
    """X-6: a wrong key changes nothing, and `vigil status` says so until it is mended."""
    file = bare.settings.home / "vigil.toml"
    service, task = await running(bare, bare.settings.home)
    context, _ = await service.next()
    context.ready.set()

    async def until(is_so: Callable[[tuple[str, ...]], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so(context.health().warnings):
                await asyncio.sleep(0.05)

    assert context.health().warnings == ()
    file.write_text('[channels.ops]\nkind = "pigeon"\n[gateway]\nprot = 1\n')
    await until(bool)
    (told,) = context.health().warnings
    assert "no kind of channel is named 'pigeon'" in told
    assert "prot" in told
    assert context.health().ready
    file.write_text("")
    await until(lambda told: not told)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_service_begins_anew_and_keeps_what_lasts(bare: Stack) -> None:
    home = bare.settings.home
    file = home / "vigil.toml"
    service, task = await running(bare, home)
    context, names = await service.next()
    assert names == set()
    closed: list[str] = []
    assert context.lasting is not None
    context.lasting.callback(closed.append, "closed")
    context.kept["socket"] = 7

    file.write_text(HOOK.format(name="ops"))
    context, names = await service.next()
    assert (names, context.kept, closed, service.ended) == ({"ops"}, {"socket": 7}, [], 1)

    # What isn't its business, and what can't be read, ends nothing.
    file.write_text(HOOK.format(name="ops") + '[mcp.notes]\ncommand = ["true"]\n')
    file.write_text("[channels")
    # One that it can't use is refused, and said; what held before holds, in all of it.
    file.write_text(PEOPLE + HOOK.format(name="ops") + HOOK.format(name="bad"))
    context, names = await service.next()
    assert (names, closed) == ({"ops"}, [])
    (warning,) = context.health().warnings
    assert warning.endswith(
        "vigil.toml as it is now can't be used: channels.bad.url: leads nowhere"
    )

    assert not context.settings.config.people
    # Where that alone is mended, all else that was changed with it is taken in as well.
    file.write_text(PEOPLE + HOOK.format(name="ops"))
    context, names = await service.next()
    assert (names, context.health().warnings) == ({"ops"}, ())
    assert set(context.settings.config.people) == {"ann"}
    # And where it's taken back, nothing is said of it any more.
    file.write_text(PEOPLE + HOOK.format(name="ops") + HOOK.format(name="bad"))
    assert (await service.next())[0].health().warnings
    file.write_text(PEOPLE + HOOK.format(name="ops"))
    context, names = await service.next()
    assert (names, context.health().warnings) == ({"ops"}, ())

    # What is in hand ends first; two changes meanwhile are one beginning, with the newest.
    service.in_hand = 1
    file.write_text(HOOK.format(name="a"))
    await asyncio.sleep(0)
    file.write_text(HOOK.format(name="a") + HOOK.format(name="b"))
    for _ in range(10):
        await asyncio.sleep(0.01)
    assert service.begun.empty()
    service.in_hand = 0
    context, names = await service.next()
    assert (names, context.health().warnings) == ({"a", "b"}, ())

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (closed, service.begun.empty()) == (["closed"], True)


async def test_what_was_taken_in_outlives_an_outage(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that lost its broker goes on with what it had begun anew with."""
    service = Service()
    monkeypatch.setattr(runtime, "load_service", lambda _: service.serve)
    monkeypatch.setattr(runtime, "AGAIN_S", 0)
    home = bare.settings.home
    settings, url = config.load({}, home=home), bare.broker.url
    task = asyncio.create_task(
        runtime.keep_running("delivery", settings, url, on_ready=lambda _: None)
    )
    await service.next()
    (home / "vigil.toml").write_text(HOOK.format(name="ops"))
    assert (await service.next())[1] == {"ops"}
    service.outage.set()
    assert (await service.next())[1] == {"ops"}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_service_that_failed_begins_with_what_it_had_taken_in(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under `vigil up`: where the file can't be used by now, not with what stood there at first.
    What was mended while it was down is taken in before it begins."""
    service = Service()
    monkeypatch.setattr(runtime, "load_service", lambda _: service.serve)
    home = bare.settings.home
    file = home / "vigil.toml"
    settings = msgspec.structs.replace(config.load({}, home=home), home=home)
    runner = TaskRunner(settings, bare.broker.url)

    async def fail(task: asyncio.Task[str]) -> None:
        service.outage.set()
        assert "the broker went" in await task

    task = asyncio.create_task(runner.run("delivery", lambda _: None))
    await service.next()
    file.write_text(HOOK.format(name="ops"))
    assert (await service.next())[1] == {"ops"}
    file.write_text(HOOK.format(name="bad"))
    assert (await service.next())[1] == {"ops"}
    await fail(task)
    task = asyncio.create_task(runner.run("delivery", lambda _: None))
    context, names = await service.next()
    assert (names, bool(context.health().warnings)) == ({"ops"}, True)
    await fail(task)
    file.write_text(HOOK.format(name="mended"))
    task = asyncio.create_task(runner.run("delivery", lambda _: None))
    assert (await service.next())[1] == {"mended"}
    await fail(task)


async def test_a_service_that_is_ended_while_it_begins_anew_ends(bare: Stack) -> None:
    """Also where its parts failed as they ended, and what asked it to end is lost in that."""

    class Stubborn(Service):
        async def serve(self, context: Context) -> None:
            try:
                await super().serve(context)
            except asyncio.CancelledError:
                ending.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

    ending = asyncio.Event()
    service, task = await running(bare, bare.settings.home, Stubborn())
    await service.next()
    (bare.settings.home / "vigil.toml").write_text(HOOK.format(name="ops"))
    async with asyncio.timeout(PATIENCE_S):
        await ending.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert service.begun.empty()


async def test_people_wait_while_the_gateway_begins_anew(tmp_path: Path) -> None:
    """Nobody is refused: they are where it listens, and are answered with what holds then."""
    async with running_stack(tmp_path, services=("gateway",)) as stack:
        port = stack.contexts["gateway"].facts["port"]
        first = stack.contexts["gateway"].instance
        answers: list[bytes] = []

        async def ask(path: str) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode()
            )
            answer = await reader.read()
            writer.close()
            return answer

        (tmp_path / "vigil.toml").write_text(HOOK.format(name="ops"))
        async with asyncio.timeout(PATIENCE_S):
            while stack.contexts["gateway"].instance == first or len(answers) < 20:
                with contextlib.suppress(
                    ConnectionResetError
                ):  # accepted at that instant: once more
                    answers.append(await ask("/healthz"))
        assert {one.split(b"\r\n", 1)[0] for one in answers} == {b"HTTP/1.1 200 OK"}
