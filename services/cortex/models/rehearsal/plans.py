"""How the rehearsal model plans a job: by rules, from the words of its prompt. Pure.

It knows the two skills that are shipped, and whoever writes the steps down for it: a line that is
the name of a tool and its arguments, as in ``shell {"command": "date"}``, is a step. To anything
else it says that it can't plan it, which is no plan.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from vigil.texts.bars import BAR

LINES_MAX: Final = 19
"""Notes that it keeps: one step each, and one to list them."""
SCRIPT: Final = "date -u\nuname -a\nnproc\ndf -h .\n"
CANNOT: Final = (
    "I am the rehearsal model, a stand-in until a real model is configured. I can plan the skills "
    "keep-notes and describe-machine, and steps that the goal or the input writes down, one a "
    "line: the name of a tool, and its arguments as a JSON object."
)
_STEP: Final = re.compile(r"\s*([A-Za-z0-9_-]{1,128})\s+(\{.*\})\s*")
_SKILL: Final = re.compile(r"^Skill: (\S+)$", re.M)

Step = dict[str, Any]


def plan(text: str) -> str:
    """Return what is answered to the question for a plan: JSON, or why there is none.

    >>> json.loads(plan('Goal:\\n| shell {"command": "date"}'))["steps"][0]["tool"]
    'shell'
    """
    goal, material = _barred(text, "Goal:"), _barred(text, "Input:")
    steps = _written(goal + material)
    skill = _SKILL.search(text)
    if not steps and skill is not None:
        steps = _known(skill[1], material)
    if not steps:
        return CANNOT
    reasoning = "These are the steps that I know for this, or that were written down for me."
    return json.dumps({"reasoning": reasoning, "steps": steps})


def _barred(text: str, heading: str) -> list[str]:
    """Return the lines behind bars that follow a heading."""
    found: list[str] = []
    after = text.partition(f"{heading}\n")[2].splitlines()
    for line in after:
        if not line.startswith(BAR):
            break
        found.append(line.removeprefix(BAR))
    return found


def _written(lines: list[str]) -> list[Step]:
    found: list[Step] = []
    for line in lines:
        match = _STEP.fullmatch(line)
        if match is not None:
            found.append(_step(match[1], match[2]))
    return found


def _known(skill: str, material: list[str]) -> list[Step]:
    """Return the steps of a skill that is shipped."""
    if skill == "keep-notes":
        notes = [line.strip() for line in material if line.strip()][:LINES_MAX]
        return [*(_step("remember", {"text": note}) for note in notes), _step("list_memory", {})]
    if skill == "describe-machine":
        return [
            _step("write_file", {"path": "describe.sh", "content": SCRIPT}),
            _step("shell", {"command": "sh describe.sh > report.txt"}),
            _step("read_file", {"path": "report.txt"}),
        ]
    return []


def _step(tool: str, arguments: dict[str, Any] | str) -> Step:
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return {"tool": tool, "input": arguments}
