"""Reading a plan from what a model said (SPEC J-1). Pure.

Whatever is wrong with it is said in a sentence that the model can use for another try.
"""

from __future__ import annotations

from typing import Any, Final

from vigil.contracts import Plan, Step
from vigil.errors import InvalidInput

from ..context.offers import cut
from ..queue import stored_size
from ..tools import json_answer

PLAN_BYTES_MAX: Final = 32 * 1024
"""A plan as it is stored: a turn holds it up to five times."""
REASONING_BYTES_MAX: Final = 2 * 1024
TOOL_LENGTH_MAX: Final = 128
DEPTH_MAX: Final = 24
"""How deep arguments may nest."""


def read(text: str, steps_max: int) -> Plan:
    """Read a plan.

    Raises:
        InvalidInput: it is none; the reason is for the model to read.

    >>> read('Here it is: {"steps": [{"tool": "search", "input": "{}"}]}', 20).steps[0].tool
    'search'
    """
    found = json_answer.object_in(text, "plan")
    steps = found.get("steps")
    if not isinstance(steps, list):
        raise _no("'steps' must be a list of steps")
    if not steps:
        raise _no("'steps' is empty: there must be at least one")
    if len(steps) > steps_max:
        raise _no(f"there are {len(steps)} steps; at most {steps_max} are allowed")
    reasoning = found.get("reasoning", "")
    plan = Plan(
        steps=tuple(_step(number, step) for number, step in enumerate(steps, start=1)),
        reasoning=cut(reasoning, REASONING_BYTES_MAX) if isinstance(reasoning, str) else "",
    )
    _check_size(plan)
    return plan


def _no(reason: str) -> InvalidInput:
    return InvalidInput("plan", reason)


def _check_size(plan: Plan) -> None:
    try:
        size = stored_size(plan)
    except (ValueError, OverflowError, UnicodeEncodeError) as error:
        raise _no(f"it holds what can't be stored ({error})") from error
    if size > PLAN_BYTES_MAX:
        raise _no(f"it has {size} bytes; at most {PLAN_BYTES_MAX} are allowed")


# ---------------------------------------------------------------- a step


def _step(number: int, step: object) -> Step:
    where = f"step {number}"
    if not isinstance(step, dict):
        raise _no(f"{where} must be an object with 'tool' and 'input'")
    tool = step.get("tool")
    if not isinstance(tool, str) or not tool.strip():
        raise _no(f"{where}: 'tool' must be the name of a tool")
    if len(tool) > TOOL_LENGTH_MAX:
        raise _no(f"{where}: 'tool' has more than {TOOL_LENGTH_MAX} characters")
    return Step(tool=tool.strip(), input=_input(where, step.get("input")))


def _input(where: str, given: object) -> dict[str, Any]:
    """Return the arguments: an object, or one written as a string, or nothing."""
    if isinstance(given, str):
        given = json_answer.whole(given) if given.strip() else {}
    elif given is None:
        given = {}
    if not isinstance(given, dict):
        raise _no(f"{where}: 'input' must be a JSON object with the tool's arguments")
    if json_answer.depth(given) > DEPTH_MAX:
        raise _no(f"{where}: 'input' is nested deeper than {DEPTH_MAX} levels")
    return given
