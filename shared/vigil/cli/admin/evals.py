"""`eval`: stories with expectations, played against a model."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil import distribution
from vigil.errors import InvalidInput
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.models.access import access_of
from vigil.subjects import check_part
from vigil.teams import DEFAULT_AGENT
from vigil.texts.columns import Column
from vigil.texts.trouble import reason_of
from vigil.words.nearest import did_you_mean

from ...background.end import end_tasks
from .. import endings, exits, output
from ..tables import Result, table

if TYPE_CHECKING:
    from vigil.evals.report import StoryResult
    from vigil.evals.story import EvalStory

Files = Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="Stories, as TOML.")]
Starter = Annotated[bool, typer.Option("--starter", help="The stories that come with Vigil.")]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only stories or themes of this name; may hold a *."),
]
Model = Annotated[
    str, typer.Option(metavar="NAME", help="A [models.NAME], or a model's id; else model.main.")
]
AgentName = Annotated[str, typer.Option(metavar="NAME", help="Whose files say who the agent is.")]
Repeat = Annotated[int, typer.Option(min=1, max=1000, help="Play each story so often.")]
Least = Annotated[
    int, typer.Option(min=0, max=1000, help="How often of those it must hold; 0: each time.")
]
Jobs = Annotated[int, typer.Option(min=1, max=32, help="Stories side by side.")]
JUnit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what came of it as JUnit's XML.")
]
Record = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write down what the model answers.")
]
Recorded = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Ask no model: take the answers from such a file."),
]
Log = Annotated[Path, typer.Option(metavar="FILE", help="Write what the services log.")]
Listed = Annotated[bool, typer.Option("--list", help="Only list the stories; nothing is played.")]
NOWHERE: Final = Path(os.devnull)


def eval_(
    files: Files = None,
    starter: Starter = False,
    only: Only = None,
    model: Model = "",
    agent: AgentName = DEFAULT_AGENT,
    repeat: Repeat = 1,
    least: Least = 0,
    jobs: Jobs = 1,
    junit: JUnit = None,
    record: Record = None,
    recorded: Recorded = None,
    log: Log = NOWHERE,
    names: Listed = False,
) -> Result:
    """Play stories against a model, each in a home of its own, and tell which hold.

    Exit code 1 if one doesn't. Nothing of your own home is changed. docs/evals.md has the form.
    """
    if bool(files) == starter:
        raise InvalidInput("FILE", "name files with stories, or --starter for those of Vigil")
    if record and recorded:
        raise InvalidInput("--record", "can't be together with --recorded")
    if least > repeat:
        raise InvalidInput("--least", f"each story is played {repeat} times only")
    stories = _chosen(_read(files or []), only or [])
    if names:
        return _listed(stories)
    distribution.check_services()
    settings = _settings(model, is_recorded=recorded is not None)
    check_part("--agent", agent)
    name = f"recording {recorded.name}" if recorded else _model_of(settings)
    _log_to(log)
    results = endings.run(
        _play(stories, settings, agent, (repeat, least or repeat, jobs), _tape(record, recorded))
    )
    return _result(results, name, junit)


def _read(files: Sequence[Path]) -> list[EvalStory]:
    from vigil.evals import files as stories

    if not files:
        return [story for theme in stories.STARTER for story in stories.starter(theme)]
    found = [story for file in files for story in stories.of_file(file)]
    stories.check_names(found)
    return found


def _chosen(stories: list[EvalStory], only: list[str]) -> list[EvalStory]:
    for name in only:
        if not any(_is_meant(story, name) for story in stories):
            there = {one for story in stories for one in (story.name, story.theme)}
            hint = did_you_mean(name, there) or ": see --list"
            raise InvalidInput("--only", f"no story or theme is called {name!r}{hint}")
    return [one for one in stories if not only or any(_is_meant(one, name) for name in only)]


def _is_meant(story: EvalStory, name: str) -> bool:
    return fnmatchcase(story.name, name) or fnmatchcase(story.theme, name)


def _listed(stories: list[EvalStory]) -> Result:
    columns = (Column("THEME", "theme"), Column("STORY", "name"), Column("WHAT IS TRIED", "why"))
    rows = [{"theme": one.theme, "name": one.name, "why": one.why} for one in stories]
    return Result(rows, partial(table, columns, rows))


def _settings(model: str, *, is_recorded: bool) -> Settings:
    """Return the person's settings, with the model that is asked for everything, if one is named.

    Raises: ConfigError: the model can't be reached as things are configured.
    """
    settings = config.load()
    if is_recorded:
        model = "rehearsal"
    if model:
        mine = settings.config
        one = msgspec.structs.replace(mine.model, main=model, cheap="", fallback="", profiles={})
        agent = msgspec.structs.replace(mine.agent, model="")
        asked = msgspec.structs.replace(mine, model=one, agent=agent, agents={})
        settings = msgspec.structs.replace(settings, config=asked)
        access_of(settings, model, "--model")
    return settings


def _model_of(settings: Settings) -> str:
    return access_of(settings, settings.config.model.main, "model.main").name


def _tape(record: Path | None, recorded: Path | None) -> Any:
    from vigil.evals import home

    path = record or recorded
    if path is None:
        return None
    try:
        return home.tape(path, "record" if record else "play")
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        setting = "--record" if record else "--recorded"
        raise InvalidInput(setting, f"{path} can't be used: {reason_of(error)}") from error


async def _play(
    stories: list[EvalStory],
    settings: Settings,
    agent: str,
    often: tuple[int, int, int],
    tape: Any,
) -> list[StoryResult]:
    from vigil.evals.play import play
    from vigil.evals.report import result_of
    from vigil.evals.stage import StageOptions

    repeat, least, jobs = often
    options = StageOptions(settings=settings, agent=agent, tape=tape)
    turns = asyncio.Semaphore(jobs)

    async def one(story: EvalStory) -> StoryResult:
        async with turns:
            played = [
                await play(story, options, time.monotonic, number)
                for number in range(1, repeat + 1)
            ]
        found = result_of(played, least)
        mark = "holds" if found.is_well else "FAILS"
        output.message(f"{mark}  {story.theme}/{story.name}")
        return found

    tasks = [asyncio.create_task(one(story)) for story in stories]
    try:
        return list(await asyncio.gather(*tasks))
    finally:  # the first that can't be played ends the others, and is what is told
        await end_tasks(*tasks)


def _log_to(file: Path) -> None:
    """Have the services' logs go to a file, for as long as this process lives."""
    from vigil.observe import logs

    try:
        logs.configure(stream=file.open("a", encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("--log", f"{file} can't be written: {reason_of(error)}") from error


def _result(results: list[StoryResult], model: str, junit: Path | None) -> Result:
    from vigil.evals import report

    if junit is not None:
        try:
            junit.write_bytes(report.junit(results, model))
        except OSError as error:
            raise InvalidInput(
                "--junit", f"{junit} can't be written: {reason_of(error)}"
            ) from error
    facts = report.facts(results, model)
    bad = [one for one in results if not one.is_well]
    end = typer.Exit(exits.FAILURE) if bad else None
    return Result(facts, partial(_show, results, facts), end)


def _show(results: list[StoryResult], facts: dict[str, Any]) -> None:
    columns = (
        Column("THEME", "theme"),
        Column("STORY", "story"),
        Column("HELD", lambda one: f"{one['held']}/{one['times']}"),
        Column("CALLS", lambda one: sum(played["model_calls"] for played in one["played"])),
        Column("TOKENS", lambda one: sum(played["tokens"] for played in one["played"])),
        Column("SECONDS", lambda one: f"{sum(played['took_s'] for played in one['played']):.1f}"),
    )
    table(columns, facts["results"])
    for one in results:
        if not one.is_well:
            output.data(f"\n{one.theme}/{one.story}")
            for line in one.reasons:
                output.data(f"  {output.printable(line)}")
    cost = facts["usd"]
    paid = "" if not cost else f", ${cost:.4f}"
    output.data(f"\n{facts['well']} of {facts['stories']} hold with {facts['model']}{paid}")
