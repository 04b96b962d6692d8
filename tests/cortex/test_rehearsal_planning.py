"""How the rehearsal model plans: what it knows, what is written down for it, nothing else (J-1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core.draft.profile import TemplateRow
from services.cortex.core.work import plans
from services.cortex.models.rehearsal.plans import CANNOT, LINES_MAX, plan
from services.cortex.profiles.planner import job_rows
from services.cortex.thought.prompts import Prompts
from services.gateway.work import skills
from vigil.contracts import Job, TextBlock
from vigil.errors import InvalidInput

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
PROMPTS = Prompts()


def asked(goal: str, material: str = "", skill: str = "") -> str:
    """Return what a model is told of a job."""
    job = Job(
        id="1", session_key="ann:vigil:_planner-1", created_at=AT,
        goal=goal, input=material, skill=skill,
    )  # fmt: skip
    (told,) = job_rows(job, (), AT)
    assert isinstance(told, TemplateRow)
    (block,) = PROMPTS.rendered(told).blocks
    assert isinstance(block, TextBlock)
    return block.text


@pytest.mark.parametrize("path", sorted(skills.SHIPPED.glob("*.md")), ids=lambda path: path.stem)
def test_it_plans_the_shipped_skills_with_their_own_tools(path: object) -> None:
    skill = skills.find(skills.SHIPPED, getattr(path, "stem", ""))
    made = plans.read(plan(asked(skill.task, "a\nb", skill.name)), 20)
    assert {step.tool for step in made.steps} <= set(skill.tools)


def test_it_takes_steps_that_are_written_down() -> None:
    goal = 'Do this:\nshell {"command": "date"}\nand {"no": "step"} then\n  search {"query": "x"}'
    made = plans.read(plan(asked(goal, 'read_file {"path": "x"}')), 20)
    assert [step.tool for step in made.steps] == ["shell", "search", "read_file"]


def test_to_anything_else_it_says_that_it_cant() -> None:
    """Honest: a stand-in makes nothing up."""
    assert plan(asked("Make me rich")) == CANNOT
    with pytest.raises(InvalidInput):
        plans.read(CANNOT, 20)


def test_so_many_notes_as_one_plan_may_hold() -> None:
    text = plan(asked("x", "\n".join(f"note {i}" for i in range(50)), "keep-notes"))
    assert len(plans.read(text, LINES_MAX + 1).steps) == LINES_MAX + 1


@given(st.text(max_size=80), st.text(max_size=200))
def test_whatever_is_asked_it_answers(goal: str, material: str) -> None:
    text = plan(asked(goal, material))
    assert text == CANNOT or json.loads(text)["steps"]
