"""After a run of the timetable: what is asked, kept and told, whatever the model answers (J-3)."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest

from services.cortex.core import Policy
from services.cortex.core.draft import Draft
from services.cortex.core.draft.kinds import ANSWER, profile_of
from services.cortex.model import ModelError
from tests.cortex.driver import START, Driver, answer, call
from vigil.contracts import (
    Control,
    ControlPayload,
    SaveMemory,
    SlotRun,
    Start,
    TellParent,
)
from vigil.contracts.board import YesNo

SEEN: Final = "Build 4711 of Marigold failed."
LOOK: Final = call("spawn_worker", task="Look at CI")


class Run(Driver):
    """A run that has somebody look, is told what they saw, and says so; and then what follows."""

    def __init__(self, *answers: Any, is_stateful: bool = True, facts: Any = (), **of: Any) -> None:
        left = [answer(LOOK), *answers]
        policy = Policy(profile=profile_of("cron"), calls_max=20, **of.pop("policy", {}))
        super().__init__(lambda _: left.pop(0), policy)
        self.key = "ann:vigil:_cron-1f"
        self.questions = 0
        slot = SlotRun(
            row="r1",
            name="ci",
            due_at=START,
            timeout_s=60,
            is_stateful=is_stateful,
            facts=dict(facts),
        )
        start = Start(prompt="Look at CI", slot=slot, source="cron:r1", allowance=3, **of)
        payload = ControlPayload(op="start", start=start)
        self.feed(Control(payload=payload, **self._envelope()))
        for _ in range(2 if is_stateful else 0):
            self.result(content="Nothing was found in memory.")
        self.result(content=SEEN)

    def finish(self, draft: Draft) -> None:
        if not draft.wants_call or draft.loop.purpose == ANSWER:
            super().finish(draft)
            return
        desk: Any = self
        question = asyncio.run(draft.profile.question(desk, draft))  # type: ignore[arg-type]
        if question is not None:
            self.questions += 1
            draft.moment = self.moment()
            said = self.brain(draft)
            if isinstance(said, ModelError):
                assert question.fail is not None
                question.fail(draft, said)
            elif not isinstance(said, Exception):
                question.apply(draft, said)
        if draft.is_dirty:
            self.commit(draft)

    def newest(self) -> Any:
        return self.history.newest

    def ask(self, draft: Draft, asked: Any) -> Any:
        raise AssertionError("the brain answers")

    @property
    def kept(self) -> list[str]:
        made = [e.payload for turn in self.turns for e in turn.effects if isinstance(e, SaveMemory)]
        return [one.content for one in made if one.type == "fact"]

    @property
    def told(self) -> list[str]:
        made = [e.payload for turn in self.turns for e in turn.effects if isinstance(e, TellParent)]
        return [f"{one.state}: {one.content}" for one in made]


def found(*said: str) -> Any:
    return answer(json.dumps({"memories": said}))


def test_so_many_are_kept_of_those_that_name_what_was_shown() -> None:
    many = [f"Build 4711 failed {n} times." for n in range(9)]
    run = Run(answer("Done."), found("All is well.", *many), policy={"extracted_max": 3})
    assert run.kept == [f"{one} (from spawn_worker)" for one in many[:2]], "the first named nothing"
    assert (run.told, run.questions, run.state.loop) == (["done: Done."], 1, None)
    ends = [turn.outcome for turn in run.turns[-2:]]
    assert ends == ["continued", "answered"], "its end is told by a turn before"
    assert not run.sends


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (found(), "there was none"),
        (found("All is well."), "none of them names anything that it was shown"),
        (answer("I see."), "there is no JSON object in it"),
        (answer(json.dumps({"memories": "4711"})), "'memories' must be a list of strings"),
        (answer("4711", stop="refusal"), "the model declined to answer"),
        (answer('{"memories": ["Build 47', stop="max_tokens"), "it must be shorter"),
        (ModelError("gone", is_retryable=False), "gone"),
    ],
)
def test_whatever_is_answered_the_run_has_ended_and_is_asked_once(said: Any, why: str) -> None:
    run = Run(answer("Done."), said)
    assert (run.told, run.questions, run.kept) == (["done: Done."], 1, [])
    assert (run.state.loop, run.turns[-1].outcome) == (None, "answered")
    (note,) = [one for one in run.turns[-1].notes if one.code == "extraction_missing"]
    assert why in note.text


def test_a_model_that_is_away_is_asked_again_and_who_cancels_then_changes_no_end() -> None:
    away = ModelError("away", is_retryable=True)
    run = Run(answer("Done."), away, found("Build 4711 failed."))
    assert (run.told, run.kept) == (["done: Done."], [])
    run.deadline()
    assert run.kept == ["Build 4711 failed. (from spawn_worker)"]
    run = Run(answer("Done."), away)
    run.control("cancel")
    assert (run.state.loop, run.turns[-1].outcome) == (None, "cancelled")
    assert run.told == ["done: Done."]


def test_nobody_is_asked_where_the_row_forgets_or_the_run_failed_or_it_is_set_so() -> None:
    for run in (
        Run(answer("Done."), is_stateful=False),
        Run(answer("Done."), policy={"extracted_max": 0}),
        Run(ValueError("401")),
    ):
        assert (run.questions, run.state.loop, len(run.told)) == (0, None, 1)
        assert not {"extraction_asked", "extraction_missing"} & set(run.notes)


@pytest.mark.parametrize("is_tainted", [True, False])
def test_they_are_marked_as_the_run_is(*, is_tainted: bool) -> None:
    run = Run(answer("Done."), found("Build 4711 failed."), is_tainted=is_tainted)
    made = [e.payload for turn in run.turns for e in turn.effects if isinstance(e, SaveMemory)]
    assert [(one.type, one.source, one.is_tainted) for one in made] == [
        ("observation", "cron:r1", is_tainted), ("fact", "cron:r1", is_tainted),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "tries", [('{"up": true}',), ("Up it is.", '{"up": true}'), ("Up it is.", "Up!")]
)
def test_it_comes_after_the_facts_that_the_row_names(tries: tuple[str, ...]) -> None:
    """FLOW F-9: they are told with the end, and no refused answer about them is in the way."""
    run = Run(
        answer("Done."), *map(answer, tries), found("Build 4711 failed."), facts={"up": YesNo()}
    )
    assert (run.told, len(run.kept)) == (["done: Done."], 1)
    assert (run.state.loop, run.questions) == (None, len(tries) + 1)
    (end,) = [e.payload for turn in run.turns for e in turn.effects if isinstance(e, TellParent)]
    assert bool(end.facts) == (tries[-1] == '{"up": true}')
    assert run.turns[-1].outcome == "answered"
