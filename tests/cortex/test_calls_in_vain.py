"""A model that some wait for in vain is still asked by others (SPEC C-5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.cortex.model import REFUSED_BY_CIRCUIT, TIMEOUT, UNUSABLE, ModelError
from services.cortex.models.guard import CallsInVain, guarded
from tests.support.messages_api import Reply, messages_api, says
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.circuits import Circuits


async def test_whose_answers_are_cut_off_stops_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-5: as by a proxy that gives a long one no time; others write in between."""

    def behave(body: dict[str, Any]) -> Reply:
        is_long = "long" in str(body["messages"])
        return says("Once upon a time", fault="cut") if is_long else says("Fine.")

    async with (
        messages_api(behave) as api,
        running_world(
            tmp_path,
            monkeypatch,
            has_agent=False,
            model={"main": "big", "retry_base_s": 2.0},
            models={"big": {"base_url": api.url}},
        ) as world,
    ):
        ann, ben = await world.person(), await world.person("ben:vigil:t1")
        await ann.say("tell me a long story")
        for tries, wait_s in enumerate((2, 4, 8), 1):
            await _until_tried(world, ann, tries)
            await world.advance(wait_s)
        await _until_tried(world, ann, 4)
        await ben.exchange("hello")
        assert ben.talk.texts == ["Fine."]
        assert (await ben.http.get("/api/health")).json()["circuits"] == []


async def _until_tried(world: World, person: Person, tries: int) -> None:
    """Wait until so many calls for a person failed."""
    await world.until(
        lambda: sum(n.code == "model_retry" for t in person.talk.turns for n in t.notes) == tries
    )


@pytest.mark.parametrize("why", [TIMEOUT, UNUSABLE])
async def test_a_conversation_that_waits_in_vain_stops_nobody_else(bare: Any, why: str) -> None:
    """C-5: its model is slow over what it asks, or its long answers are cut off on their way; a
    model that several wait for in vain isn't asked."""
    clock, in_vain = StoppedClock(), CallsInVain()
    circuits = Circuits(await bare.bus("cortex"), clock, "cortex")

    async def call(session: str, kind: str = "") -> None:
        async def ask() -> None:
            if kind:
                raise ModelError("none", is_retryable=kind != "endless", kind=kind)

        await guarded(circuits, in_vain, "m", session, ask)

    async def wait_in_vain(session: str, kind: str = why) -> None:
        with pytest.raises(ModelError, match="none"):
            await call(session, kind)

    for _ in range(6):
        await wait_in_vain("ann")
        await wait_in_vain("ann", "endless")
    await call("ben")
    for session in ("ann", "ben", "ann", "ann"):
        await wait_in_vain(session)
    await call("cat")
    for session in ("ann", "ben", "cat"):
        await wait_in_vain(session)
    with pytest.raises(ModelError) as refused:
        await call("dan")
    assert refused.value.kind == REFUSED_BY_CIRCUIT
    clock.move(31)
    await wait_in_vain("ann")  # the trial, which counts whoever makes it
    with pytest.raises(ModelError) as refused:
        await call("dan")
    assert refused.value.kind == REFUSED_BY_CIRCUIT
