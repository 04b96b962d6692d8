"""Models that fail again and again aren't asked for a while (SPEC C-5)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest

from services.cortex.core import Policy
from services.cortex.model import REFUSED_BY_CIRCUIT, ModelError
from tests.cortex.driver import Driver, answer
from tests.support.messages_api import MessagesApi, Reply, fails, messages_api, says
from tests.support.signals import settled
from tests.support.talk import PATIENCE_S
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.bus.bus import Bus
from vigil.circuits import CircuitOpen, Circuits, reset
from vigil.erasure.deletion import erase_message

NAME: Final = "model:big"


async def _health(http: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await http.get("/api/health")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["circuits"]
    return found


def _notes(person: Person) -> list[str]:
    return [note.code for turn in person.talk.turns for note in turn.notes]


async def _until(world: World, person: Person, notes: list[str]) -> None:
    await world.until(lambda: _notes(person) == notes)


async def _until_texts(world: World, person: Person, texts: list[str]) -> None:
    await world.until(lambda: person.talk.texts == texts)


class Server:
    """A provider that is away until it's said to be back."""

    def __init__(self) -> None:
        self.is_back = False

    def __call__(self, _: dict[str, Any]) -> Reply:
        return says("Here I am.") if self.is_back else fails(529)


async def test_a_provider_that_is_away_is_left_alone_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-5: open after three failures, nothing is sent then; one trial; a restart changes nothing;
    closed by an answer, or by hand."""
    server = Server()
    async with (
        messages_api(server) as api,
        running_world(
            tmp_path,
            monkeypatch,
            has_agent=False,
            model={"main": "big", "retry_base_s": 2.0},
            models={"big": {"base_url": api.url}},
        ) as world,
    ):
        ann, ben = await world.person(), await world.person("ben:vigil:t1")
        await _trip(world, api, ann)

        # One who comes now is refused at once, and waits. So it is after a restart.
        await ben.say("are you there?")
        await _until(world, ben, ["model_unasked"])
        await world.stack.stop("cortex")
        await world.stack.start("cortex")
        cat = await world.person("cat:vigil:t1")
        chat = {"message": "hello?", "userId": "cat", "threadId": "t1"}
        told = await cat.http.post("/api/chat", json=chat)
        assert told.status_code == 200, told.text  # what is said of it is the answer, at once
        assert "I can't answer yet: the model big is not asked for 30 s" in told.json()["response"]
        await _until(world, cat, ["model_unasked"])
        assert "the model big is not asked for 30 s" in cat.talk.turns[-1].notes[0].text
        assert len(api.requests) == 3
        assert await _reserved(world) == 0

        # All three come back at the same instant: one is let through, and fails.
        await world.advance(30)
        await world.until(lambda: len(api.requests) == 4)
        (found,) = await _health(ann.http)
        assert found["state"] == "open"
        # The next trial is answered, and everybody's message soon after it.
        server.is_back = True
        await world.advance(60)
        await world.advance(10)
        await world.until(
            lambda: all("Here I am." in person.talk.texts for person in (ann, ben, cat))
        )
        (found,) = await _health(ann.http)
        assert (found["name"], found["state"]) == (NAME, "closed")

        # Once more, and this time a person says that it's well again.
        server.is_back = False
        dan = await world.person("dan:vigil:t1")
        before = len(api.requests)
        await _trip(world, api, dan, before)
        server.is_back = True
        assert (await _reset(ann.http)).status_code == 403
        root = await world.admin_client()
        answer = await _reset(root)
        assert (answer.status_code, answer.json()["state"]) == (200, "closed")
        other = await _reset(root, "model:other")
        assert (other.status_code, other.json()["detail"]) == (
            404,
            f"there is no circuit 'model:other': it never opened; did you mean {NAME}?",
        )
        await ben.exchange("again")
        assert len(api.requests) > before + 3

        assert ben.talk.texts.count("Here I am.") == 2
        assert len([text for text in ben.talk.texts if "can't answer yet" in text]) == 1
        told = [one for one in await settled(world.admin) if one.kind.startswith("circuit.")]
        assert [one.kind for one in told] == ["circuit.opened", "circuit.closed"] * 2
        assert all(one.data["component"] == NAME and one.session_key is None for one in told)
        assert "overloaded (529)" in told[0].text
        assert [one.data["by"] for one in told] == ["cortex", "cortex", "cortex", "root"]


async def _trip(world: World, api: MessagesApi, person: Person, before: int = 0) -> None:
    """Have a person's message fail three times."""
    await person.say("hello")
    await _until(world, person, ["model_retry"])
    await world.advance(2)
    await _until(world, person, ["model_retry"] * 2)
    await world.advance(4)
    await _until(world, person, ["model_retry"] * 3)
    assert len(api.requests) == before + 3
    found = (await _health(person.http))[0]
    assert (found["name"], found["state"]) == (NAME, "open")
    assert "overloaded (529)" in found["reason"]


async def _reset(http: httpx2.AsyncClient, name: str = NAME) -> httpx2.Response:
    return await http.post("/api/health/reset", json={"name": name})


async def _reserved(world: World) -> int:
    """Return what is set aside of the day's tokens."""
    found = await world.admin.read("KV_BUDGETS", ["$KV.BUDGETS.*.instance.all"])
    return int(msgspec.json.decode(found[-1].data)["reserved"]) if found else 0


async def test_what_one_session_asks_closes_the_way_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-5: a request that is refused is the session's own matter, however often."""

    def behave(body: dict[str, Any]) -> Reply:
        return fails(400) if "bad" in str(body["messages"]) else says("Fine.")

    async with (
        messages_api(behave) as api,
        running_world(
            tmp_path,
            monkeypatch,
            has_agent=False,
            model={"main": "big"},
            models={"big": {"base_url": api.url}},
        ) as world,
    ):
        ann, ben = await world.person(), await world.person("ben:vigil:t1")
        for _ in range(4):
            await ann.exchange("something bad")
        await ben.exchange("hello")
        assert ben.talk.texts == ["Fine."]
        # It's the session that fails: what it does unasked waits, and nothing else.
        (found,) = await _opened(world)
        assert found["name"] == f"session:{ann.key}"
        assert await _health(ben.http) == []


async def _opened(world: World) -> list[dict[str, Any]]:
    """Wait until something isn't asked."""
    root = await world.admin_client()
    async with asyncio.timeout(PATIENCE_S):
        while not (found := [one for one in await _health(root) if one["state"] == "open"]):
            await asyncio.sleep(0.02)
    return found


async def _tell(person: Person, number: int) -> httpx2.Response:
    """Have a system tell that person's session something."""
    told = {
        "specversion": "1.0", "id": str(number), "source": "https://ci.example", "type": "build",
        "subject": person.key, "data": {"number": number},
    }  # fmt: skip
    return await person.http.post(
        "/api/events", json=told, headers={"content-type": "application/cloudevents+json"}
    )


async def test_an_error_loop_opens_at_three_half_opens_and_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-4: what a session does unasked waits then; one trial; its person is answered all the time.
    Told as signals."""
    is_well = False

    def behave(_: dict[str, Any]) -> Reply:
        return says("Noted.") if is_well else fails(400)

    async with (
        messages_api(behave) as api,
        running_world(
            tmp_path,
            monkeypatch,
            has_agent=False,
            model={"main": "big"},
            models={"big": {"base_url": api.url}},
        ) as world,
    ):
        ann = await world.person()
        for number in range(3):
            assert (await _tell(ann, number)).status_code == 202
            await world.at_rest()
        (found,) = await _opened(world)
        assert (found["name"], found["reason"]) == (
            f"session:{ann.key}",
            "3 exchanges given up within 0 s",
        )
        assert len(api.requests) == 3

        await _tell(ann, 3)
        await _until(world, ann, ["model_failed"] * 3 + ["model_unasked"])
        await world.advance(30)  # the trial fails, too
        await world.until(lambda: len(api.requests) == 4)
        await world.at_rest()
        assert [one["state"] for one in await _health(ann.http)] == ["open"]
        await _tell(ann, 4)
        await world.until(lambda: _notes(ann)[-1] == "model_unasked")
        is_well = True
        await world.advance(60)
        await world.until(lambda: ann.talk.turns[-1].state.loop is None)
        assert len(api.requests) == 5
        assert [one["state"] for one in await _health(ann.http)] == ["closed"]

        told = [one for one in await settled(world.admin) if one.kind.startswith("circuit.")]
        assert [one.kind for one in told] == ["circuit.opened", "circuit.closed"]
        assert {one.owner for one in told} == {"ann"}


async def test_a_flood_slows_its_source_down_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-4: 429 with an instant to come again, until the time is over."""
    async with running_world(tmp_path, monkeypatch, gateway={"rate_burst": 500}) as world:
        ann, ben = await world.person(), await world.person("ben:vigil:t1")
        for number in range(70):
            assert (await _tell(ann, number)).status_code in (202, 429)
        (found,) = await _opened(world)
        assert found["name"] == f"outside:{ann.key}"
        answers = [await _tell(ann, number) for number in range(100, 110)]
        assert [one.status_code for one in answers][-5:] == [429] * 5
        assert int(answers[-1].headers["retry-after"]) <= 10
        assert (await _tell(ben, 1)).status_code == 202
        await ann.exchange("still there?")

        await world.advance(120)
        assert (await _tell(ann, 200)).status_code == 202
        assert [one["state"] for one in await _health(ann.http)] == ["closed"]
        assert (await _tell(ann, 201)).status_code == 202


def _refused() -> ModelError:
    return ModelError("away", is_retryable=True, retry_after_s=30.0, kind=REFUSED_BY_CIRCUIT)


def test_waiting_for_a_circuit_uses_no_attempt_until_it_takes_too_long() -> None:
    """Nothing is lost in an outage of some minutes, however often it is looked; nobody waits for
    ever."""
    driver = Driver(lambda _: _refused(), Policy(retries_max=2))
    driver.user()
    notice = "I can't answer yet: away. I will as soon as it is asked again."
    for _ in range(20):
        assert driver.texts == [notice], "once, at the first refusal"
        _retry(driver)
    assert {note.code for turn in driver.turns for note in turn.notes} == {"model_unasked"}
    looks = 20
    while driver.state.loop is not None:
        _retry(driver)
        looks += 1
    assert looks < 35
    assert driver.texts == [notice, "I could not answer: away"]
    assert [turn.outcome for turn in driver.turns][-1] == "failed"


def test_a_circuit_that_is_open_asks_the_fallback_at_once() -> None:
    asked: list[bool] = []

    def think(draft: Any) -> Any:
        until = draft.state.fallback_until
        asked.append(until is not None)
        return _refused() if until is None else answer("Hello.")

    driver = Driver(think, Policy(fallback="small", fallback_after=5))
    driver.user()
    assert asked == [False, True]
    assert driver.texts == ["Hello."]


def _retry(driver: Driver) -> None:
    loop = driver.state.loop
    assert loop is not None
    assert loop.retry is not None
    driver.now = loop.retry.due_at
    driver.deadline()


async def test_of_all_replicas_one_opens_it_and_one_makes_the_trial(bare: Any) -> None:
    """C-5: the state is on the board, so all go by it; a reset by hand is seen at once."""
    bus: Bus = await bare.bus("cortex")

    clock = StoppedClock()
    one, two = (Circuits(bus, clock, "cortex") for _ in range(2))
    passed = [(each, await each.enter("model:m")) for each in (one, two) for _ in range(3)]
    for each, call in passed:
        await each.failed(call, "no answer")
    for each in (one, two):
        with pytest.raises(CircuitOpen, match="no answer"):
            await each.enter("model:m")
    assert (await bus.get_last("BOARD", "board._._.circuit.*")).seq == 1  # type: ignore[union-attr]

    clock.move(31)
    trial = await two.enter("model:m")
    with pytest.raises(CircuitOpen):
        await one.enter("model:m")
    # Who made the trial is gone: another is made once that is clear.
    clock.move(200)
    again = await one.enter("model:m")
    await two.succeeded(trial)
    with pytest.raises(CircuitOpen):
        await two.enter("model:m")
    await one.failed(again, "no answer")
    await reset(bus, "model:m", by="root", now=clock.now())
    for each in (one, two):
        await each.succeeded(await each.enter("model:m"))


async def test_whoever_comes_under_the_name_of_somebody_erased_finds_all_closed(bare: Any) -> None:
    """X-8: the record is gone. Open it stayed open until a restart, and closed it never opened."""
    bus: Bus = await bare.bus("cortex")
    admin: Bus = await bare.bus("admin")
    circuits, clock = Circuits(bus, StoppedClock(), "cortex"), StoppedClock()
    name = "session:ann:vigil:main"

    async def fail() -> None:
        for _ in range(3):
            await circuits.failed(await circuits.enter(name), "no answer")
        with pytest.raises(CircuitOpen, match="no answer"):
            await circuits.enter(name)

    async def erase() -> None:
        for message in await admin.read("BOARD", ["board.vigil.ann.circuit.*"]):
            await erase_message(admin, "BOARD", message.seq)

    await fail()
    await erase()
    await fail()
    await reset(bus, name, by="ann", now=clock.now())
    await circuits.succeeded(await circuits.enter(name))
    await erase()
    await fail()
