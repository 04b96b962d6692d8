"""`jobs`: hand work in that runs by itself, watch it, end it, run it again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.contracts.vocabulary import JobStatus
from vigil.sdk.client import Client

from .. import completion, options, output, prefixes, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .job_watch import watch

GOAL_LENGTH_MAX: Final = 60
LOOKED_AT_MAX: Final = 200
"""Of the newest jobs, for one that is named by the beginning of its id."""

app = CommandLine(
    cls=ListedGroup,
    help="Work that runs by itself: list, run, show, cancel, again. Default: list.",
)

Id = Annotated[str, options.id_of("a job", "vigil jobs", completion.job_ids)]
State = Annotated[
    JobStatus | None,
    typer.Option("--status", help="Only those that are so."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Stay until it has ended, and show how it goes.")
]


@app.command("list")
def list_(status: State = None, limit: Limit = 50) -> Result:
    """List jobs, the newest first: your own, or with an admin token everybody's."""
    found = options.client().jobs(status=status, limit=limit)
    empty = "No jobs. `vigil jobs skills` lists what there is to run."
    return tables.listing("jobs", found, COLUMNS, empty=empty)


def _steps(job: Mapping[str, Any]) -> str:
    """Say how many steps are done, and how many of them failed.

    >>> _steps({"steps": 3, "steps_done": 2, "steps_failed": 1}), _steps({})
    ('2/3, 1 failed', '-')
    """
    if not job.get("steps"):
        return "-"
    failed = job.get("steps_failed", 0)
    done = f"{job.get('steps_done', 0)}/{job['steps']}"
    return f"{done}, {failed} failed" if failed else done


COLUMNS: Final = (
    Column("ID", "id"),
    Column("CREATED", "created_at", is_instant=True),
    Column("STATUS", "status"),
    Column("STEPS", _steps, rank=1),
    Column("SKILL", "skill", rank=2),
    Column("GOAL", lambda job: tables.short(job.get("goal", ""), GOAL_LENGTH_MAX)),
)
FIELDS: Final = (
    Column("id", "id"),
    Column("session", "session_key"),
    Column("status", "status"),
    Column("error", "error"),
    Column("skill", "skill"),
    Column("goal", "goal"),
    Column("input", "input"),
    Column("tools", lambda job: ", ".join(job.get("tools", ()))),
    Column("created", "created_at", is_instant=True),
    Column("begun by", lambda job: job.get("trigger", "manual")),
    Column("started", "started_at", is_instant=True),
    Column("ended", "completed_at", is_instant=True),
    Column("runs", "runs"),
    Column("reasoning", lambda job: (job.get("plan") or {}).get("reasoning")),
)
SKILLS: Final = (
    Column("SKILL", "name"),
    Column("GOAL", "goal"),
    Column("TOOLS", lambda skill: ", ".join(skill.get("tools", ())) or "all"),
)


@app.command()
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
    return Result(made, partial(output.data, made["id"]))


@app.command()
def show(id_: Id) -> Result:
    """Show a job: its plan, and what became of each step."""
    client = options.client()
    found = client.job(_whole(client, id_))
    return Result(found, partial(_show, found))


def _show(job: dict[str, Any]) -> None:
    """Show a job, and each step of its plan with what came of it."""
    tables.fields(FIELDS, job)
    runs = job.get("step_runs", [])
    for index, step in enumerate((job.get("plan") or {}).get("steps", [])):
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


@app.command()
def cancel(id_: Id) -> Result:
    """End a job, with the call that it is at. Exit code 5 if it has ended."""
    client = options.client()
    id_ = _whole(client, id_)
    client.cancel_job(id_)
    return tables.done(f"Cancelled {id_}.", {"id": id_, "cancelled": True})


@app.command()
def again(id_: Id, wait: Wait = False, json: options.Json = False) -> Result:
    """Run a job anew, with another plan. Exit code 5 if it has not ended."""
    client = options.client()
    id_ = _whole(client, id_)
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


def _whole(client: Client, id_: str) -> str:
    return prefixes.whole("job", id_, (one["id"] for one in client.jobs(limit=LOOKED_AT_MAX)))
