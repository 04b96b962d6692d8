"""`jobs`: hand work in that runs by itself, watch it, end it, run it again.

What is listed and shown of them is said by the kind (`vigil.board.kinds.job`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.board.kinds.job import KIND

from .. import completion, options, output, tables
from ..board.kinds import KindCommands
from ..tables import Column, Result
from .job_watch import watch


class JobCommands(KindCommands):
    """What is made of the kind, with the steps of one that is shown."""

    def _print(self, found: dict[str, Any]) -> None:
        super()._print(found)
        runs = found.get("step_runs", [])
        for index, step in enumerate((found.get("plan") or {}).get("steps", [])):
            ran = runs[index] if index < len(runs) else None
            output.data("")
            output.data(f"{index + 1}. {output.printable(step['tool'])}  {_state(ran)}")
            if step.get("input"):
                output.json(step["input"])
            told = (ran or {}).get("error") or (ran or {}).get("output")
            if told:
                output.data(output.printable(told))


def _state(run: dict[str, Any] | None) -> str:
    """Say what became of a step.

    >>> _state(None), _state({"error": "no"}), _state({}), _state({"completed_at": "…"})
    ('not yet', 'failed', 'under way', 'done')
    """
    if run is None:
        return "not yet"
    if run.get("error"):
        return "failed"
    return "done" if run.get("completed_at") else "under way"


JOBS: Final = JobCommands(KIND)
app = JOBS.group()

Id = Annotated[str, JOBS.argument()]
Wait = Annotated[
    bool, typer.Option("--wait", help="Stay until it has ended, and show how it goes.")
]


SKILLS: Final = (
    Column("SKILL", "name"),
    Column("GOAL", "goal"),
    Column("TOOLS", lambda skill: ", ".join(skill.get("tools", ())) or "all"),
)


@app.command("run")
def run(
    skill: Annotated[
        str | None,
        typer.Argument(
            metavar="[SKILL]", help="The name of a skill.", autocompletion=completion.skills
        ),
    ] = None,
    goal: Annotated[
        str | None, typer.Option("--goal", help="What is to be done, instead of a skill.")
    ] = None,
    material: Annotated[
        str, typer.Option("--input", metavar="TEXT", help="Material to work on; - reads stdin.")
    ] = "",
    vouch: Annotated[
        bool,
        typer.Option(
            "--vouch", help="You wrote the input, or have read it: it may order what you may."
        ),
    ] = False,
    wait: Wait = False,
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="The agent.", autocompletion=completion.agents),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="A name of yours: the same runs once a day.")
    ] = None,
    json: options.Json = False,
) -> Result:
    """Hand in a job; its id comes at once. With --wait, exit code 1 if it doesn't succeed."""
    if (skill is None) == (goal is None):
        raise typer.BadParameter("give either a SKILL or --goal")
    client = options.client()
    text = sys.stdin.read() if material == "-" else material
    made = client.start_job(
        skill, goal=goal, input=text, vouch=vouch, agent=agent, idempotency_key=key
    )
    if wait:
        return watch(client, made["id"], is_json=json)
    short = made["id"][:8]
    said = f"It is handed in: `vigil jobs show {short}` tells how far it is."
    return tables.made(said, made, made["id"])


@app.command()
def cancel(id_: Id) -> Result:
    """End a job, with the call that it is at. Exit code 5 if it has ended."""
    client = options.client()
    id_ = JOBS.whole(client, id_)
    client.cancel_job(id_)
    return tables.done(f"Cancelled {id_}.", {"id": id_, "cancelled": True})


@app.command()
def again(id_: Id, wait: Wait = False, json: options.Json = False) -> Result:
    """Run a job anew, with another plan. Exit code 5 if it has not ended."""
    client = options.client()
    id_ = JOBS.whole(client, id_)
    runs = client.job(id_).get("runs", 0)
    client.run_job_again(id_)
    if wait:
        return watch(client, id_, runs_min=runs + 1, is_json=json)
    return tables.done(f"{id_} runs again.", {"id": id_, "queued": True})


@app.command()
def skills() -> Result:
    """List what jobs can do: the files in $VIGIL_HOME/skills."""
    found = options.client().skills()
    return Result(found, partial(_show_skills, found))


def _show_skills(found: Mapping[str, Any]) -> None:
    empty = "No skills. Each is a file in $VIGIL_HOME/skills."
    tables.listing("skills", found["skills"], SKILLS, empty=empty).show()
    for broken in found.get("broken", ()):
        output.message(f"not usable: {output.printable(broken['problem'])}")


_FIRST: Final = ("list", "run")
"""In the list of commands."""
app.registered_commands.sort(key=lambda one: one.name not in _FIRST)
