"""Watching a job until it ends: a bar on a terminal, a line for each step anywhere else."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any, Final

import typer

from vigil.errors import Unavailable
from vigil.sdk.client import ApiError, Client, is_passing

from .. import exits, output, tables
from ..tables import Result

POLL_S: Final = 0.25
POLL_MAX_S: Final = 2.0
"""A job that takes long is looked at less often."""
ENDED: Final = ("succeeded", "failed", "cancelled")


def watch(client: Client, id_: str, *, runs_min: int = 0, is_json: bool = False) -> Result:
    """Print the id of a job, show how it goes until it ends, and return what became of it.

    The id comes first: whoever stops watching, by Ctrl-C, needs it.

    Args:
        runs_min: the run that is meant; one before it may still be shown as ended.
        is_json: show each state but the last, which the result is; each has the id.
    """
    if not is_json:
        output.data(id_)
    show = _Lines(is_json=is_json) if is_json or not output.is_fancy(sys.stderr) else _Bar()
    poll_s, before, is_begun = POLL_S, None, False
    with show:
        while True:
            job = _fetch(client, id_)
            if job is not None and job != before:
                poll_s, before = POLL_S, job
                is_over = job["status"] in ENDED
                is_last = is_over and (is_begun or job.get("runs", 0) >= runs_min)
                if not (is_last and is_json):
                    show.take(job)
                if is_last:
                    break
                is_begun = is_begun or not is_over
            time.sleep(poll_s)
            poll_s = min(poll_s * 1.2, POLL_MAX_S)
    end = None if job["status"] == "succeeded" else typer.Exit(exits.FAILURE)
    return Result(job, partial(_print_end, job), end)


def _fetch(client: Client, id_: str) -> dict[str, Any] | None:
    """Return the job; None, if the gateway is away for a moment, or it isn't listed yet."""
    try:
        return client.job(id_)
    except (Unavailable, ApiError) as error:
        is_unlisted = isinstance(error, ApiError) and error.status == 404
        if not (is_unlisted or is_passing(error)):
            raise
        return None


def _print_end(job: dict[str, Any]) -> None:
    failed = job.get("steps_failed", 0)
    what = f"{job['status']}: {job.get('steps_done', 0)} of {job.get('steps', 0)} steps"
    error = f": {job['error']}" if job.get("error") else ""
    output.message(output.printable(what + (f", {failed} failed" if failed else "") + error))


def described(run: dict[str, Any]) -> str:
    """Return the first words of what a step told."""
    return tables.short(" ".join((run.get("error") or run.get("output") or "").split()))


class _Lines:
    """One line for each step that is done; or for each state, in JSON."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._run = 0
        self._done = 0

    def take(self, job: dict[str, Any]) -> None:
        if self._is_json:
            output.json(job)
            return
        if job.get("runs", 0) != self._run:
            self._run, self._done = job.get("runs", 0), 0
        done = [run for run in job.get("step_runs", ()) if run.get("completed_at")]
        for number, run in enumerate(done[self._done :], start=self._done + 1):
            state = "failed" if run.get("error") else "done"
            line = f"{number}/{job['steps']} {run['tool']} {state}: {described(run)}"
            output.message(output.printable(line))
        self._done = len(done)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Bar:
    """A bar that is drawn over and over, with the step that is under way."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        # Words of models go in as they are: no markup of theirs is drawn.
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("queued", total=None)

    def take(self, job: dict[str, Any]) -> None:
        runs = job.get("step_runs", [])
        at = runs[-1]["tool"] if runs and not runs[-1].get("completed_at") else ""
        words = f"{job['status']} {at}".strip() if job.get("steps") else _before_plan(job)
        self._progress.update(
            self._task,
            description=output.printable(words),
            total=job.get("steps") or None,
            completed=job.get("steps_done", 0),
        )

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _before_plan(job: dict[str, Any]) -> str:
    return "planning" if job["status"] == "running" else str(job["status"])
