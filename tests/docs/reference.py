"""The pages of docs/reference, made of the code that owns what they list, and the two documents for
machines beside them.

After a change, write them anew by `make reference`, and read what changed.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from services.cortex.core.draft.kinds import registered
from services.cortex.core.draft.profile import Profile
from services.gateway import app
from services.gateway.documents import bus as bus_document
from services.gateway.documents import problems
from services.gateway.http.problem import name_of
from tests.docs import commands
from vigil import __version__, crash, topology
from vigil.calendars.section import CalendarSection
from vigil.channels import kinds
from vigil.contacts.section import ContactSource
from vigil.contracts import TaskStatus
from vigil.contracts.board.vocabulary import GOALS, SLOTS, TASKS, GoalStatus, StatusWords
from vigil.contracts.notes import NOTES
from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.contracts.vocabulary import (
    APPROVALS,
    ENDINGS,
    JOBS,
    OUTCOMES,
    RECEIPTS,
)
from vigil.fields.section import Section
from vigil.goals import lifecycle as goal_lifecycle
from vigil.observe import actions, metrics, spans
from vigil.settings import config
from vigil.settings.grants import GrantSection
from vigil.settings.mailboxes import MailboxSection
from vigil.settings.models import ModelRow
from vigil.settings.sections import Hook, WatchSection
from vigil.settings.servers import A2aAgent, McpServer
from vigil.settings.sites import Site
from vigil.signals.kinds import KINDS
from vigil.tasks import lifecycle

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"


def page(title: str, text: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", text, *parts)) + "\n"


# ---------------------------------------------------------------- settings


def own_docstrings(section: type) -> Iterator[tuple[str, str]]:
    """Yield what the source says under each field of one class."""
    (definition,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            yield field.target.id, plain(ast.literal_eval(text.value))


def docstrings(section: type) -> dict[str, str]:
    """Return what the source says under each field, those of base classes first."""
    bases = [base for base in reversed(section.__mro__) if issubclass(base, Section)]
    return {name: text for base in bases for name, text in own_docstrings(base)}


def plain(docstring: str) -> str:
    """Return a docstring in one line, without what it quotes of the specification."""
    text = re.sub(r" \((SPEC|ARCHITECTURE)[^)]*\)", "", " ".join(docstring.split()))
    return text.replace("``", "`")


def choices(kind: Any) -> tuple[str, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def settings_of(section: type[Section]) -> Iterator[str]:
    """Yield a line for each key, as it is written in TOML."""
    texts = docstrings(section)
    for field in msgspec.structs.fields(section):
        if field.required:
            key = f"`{field.name}` (required)"
        else:
            default = (
                field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            )
            value = json.dumps(default).replace("Infinity", "inf")
            # TOML has no null: such a key isn't written at all.
            key = f"`{field.name}`" if default is None else f"`{field.name} = {value}`"
        others = [f"`{json.dumps(one)}`" for one in choices(field.type) if one != field.default]
        also = f" or {', '.join(others)}" if others else ""
        yield f"* {key}{also}: {texts[field.name]}"


def settings_part(heading: str, section: type[Section], *lines: str) -> str:
    """Return what is under one heading: what the section is for, and its keys."""
    documented = "__doc__" in vars(section) and section.__doc__
    text = [plain(section.__doc__), ""] if documented and section.__doc__ else []
    return "\n".join((f"## {heading}", "", *text, *lines, *settings_of(section)))


def settings() -> str:
    sections = [
        settings_part(part.name, part.type)
        for part in msgspec.structs.fields(config.Config)
        if part.name not in (*config.NAMED_SECTIONS, config.LISTED_SECTION)
    ]
    channel = f'* `kind = "{kinds.DEFAULT}"`: Or one that another distribution adds.'
    return page(
        "Settings",
        "Each key with its default. In `$VIGIL_HOME/vigil.toml`: `[gateway]`, `port = 8420`; as a\n"
        "variable `VIGIL_GATEWAY__PORT=8420`.",
        *sections,
        settings_part("channels.NAME", kinds.BUILT_IN[kinds.DEFAULT], channel),
        *(
            settings_part(f"channels.NAME, {name}", kind, f'* `kind = "{name}"` (required)')
            for name, kind in kinds.BUILT_IN.items()
            if name != kinds.DEFAULT
        ),
        settings_part("models.NAME", ModelRow),
        settings_part("hooks.NAME", Hook),
        settings_part("mailboxes.NAME", MailboxSection),
        settings_part("mcp.NAME", McpServer),
        settings_part("a2a.NAME", A2aAgent),
        settings_part("sites.NAME", Site),
        settings_part("calendars.NAME", CalendarSection),
        settings_part("contacts.NAME", ContactSource),
        settings_part("watch.NAME", WatchSection),
        settings_part("grants", GrantSection),
    )


# ---------------------------------------------------------------- words of the log


def listed(words: Mapping[str, Any]) -> str:
    """Return a line for each word with its meaning, as text in two columns."""
    width = max(map(len, words))
    return "\n".join(f"    {word:{width}}  {meaning(row)}" for word, row in words.items())


def meaning(row: Any) -> str:
    return str(getattr(row, "meaning", row)).replace("`", "")


def outcomes() -> str:
    return page(
        "Outcomes and verdicts",
        "What a turn was about. Its `ended` lists the events whose exchange is over: an answer\n"
        "that somebody waits for is there, or will not come.",
        listed(OUTCOMES),
        "## Verdicts\n\nHow a story of `vigil why` ends.",
        listed(ENDINGS),
    )


def notes() -> str:
    return page("Notes of turns", "Why a turn is as it is.", listed(NOTES))


def crash_points() -> str:
    return page(
        "Crash points",
        "`VIGIL_CRASH_AT=name:n` ends the process at the n-th passage, like SIGKILL (code 137).\n"
        "What was done before → how it goes on:",
        listed({name: " → ".join(words) for name, words in crash.POINTS.items()}),
    )


def states() -> str:
    sessions = (
        f"* `{name}`: {SESSION_KINDS[name].meaning}; {limits(profile)}"
        for name, profile in registered().items()
        if name in SESSION_KINDS
    )
    return page(
        "States",
        "Of what [lifecycles.md](../lifecycles.md) explains.",
        "## Kinds of sessions\n\n" + "\n".join(sessions),
        "## Jobs\n\n" + listed({name: with_signal(row.step, row) for name, row in JOBS.items()}),
        "## Tasks\n\n" + listed({name: task(name, row) for name, row in TASKS.items()}),
        "## Goals\n\n" + listed({name: goal(name, row) for name, row in GOALS.items()}),
        "## Slots\n\n" + listed(SLOTS),
        "## Requests to a person\n\n" + listed({k: row.signal for k, row in APPROVALS.items()}),
        "## Receipts of messages\n\n"
        + listed({name: with_signal(row.step, row) for name, row in RECEIPTS.items()}),
    )


def limits(profile: Profile) -> str:
    """Return what the profile and the settings say of how much a session may do."""
    values = {"calls_max": profile.calls_max, "timeout_s": profile.timeout_s}
    values |= {"children_max": profile.children_max}
    return ", ".join(
        f"`{profile.settings[name]}`" if name in profile.settings else f"{name} {value:g}"
        for name, value in values.items()
        if value
    )


def task(name: TaskStatus, row: StatusWords) -> str:
    moves = ", ".join(f"`{to}`" for to in lifecycle.MOVES[name])
    return f"{with_signal(row.step, row)} → {moves}"


def goal(name: GoalStatus, row: StatusWords) -> str:
    moves = ", ".join(f"`{to}`{of_timed(to)}" for to in goal_lifecycle.MOVES[name])
    return with_signal(row.step, row) + (f" → {moves}" if moves else "")


def of_timed(status: GoalStatus) -> str:
    return " (a timed one)" if status in goal_lifecycle.OF_TIMED else ""


def with_signal(text: str, row: Any) -> str:
    return f"{text[0].lower()}{text[1:]}" + (f" (signal `{row.signal}`)" if row.signal else "")


# ---------------------------------------------------------------- signals and telemetry


def signals() -> str:
    return page(
        "Signals", "What a reader of [signals](../api.md#signals) can filter by.", listed(KINDS)
    )


def logs() -> str:
    return page(
        "Log actions",
        "`{service}`: each service. `{worker}`: delivery, executor, memory and scheduler.",
        "## Errors\n\n" + listed(actions.ERRORS),
        "## Warnings\n\n" + listed(actions.WARNINGS),
        "## Info\n\n" + listed(actions.INFOS),
    )


def metric_page() -> str:
    lines = {
        labelled(metric): f"{metric.service} {metric.kind}: {metric.help}"
        for metric in metrics.METRICS
    }
    return page("Metrics", "With their labels, kind, and who counts them.", listed(lines))


def labelled(metric: metrics.Metric) -> str:
    return metric.name + (f"{{{','.join(metric.labels)}}}" if metric.labels else "")


def span_page() -> str:
    lines = (
        f"* `{span.name}` ({span.service}, {span.direction}): {span.meaning}.\n"
        f"  {' '.join(f'`{name}`' for name in span.attributes)}"
        for span in spans.SPANS
    )
    conventions = "https://github.com/open-telemetry/semantic-conventions-genai"
    text = (
        "With service, kind and attributes. Those of `gen_ai.*` are named as in\n"
        f"[OpenTelemetry's conventions for generative AI]({conventions}), "
        f"version {spans.GEN_AI_VERSION}."
    )
    return page("Spans", text, "\n".join(lines))


# ---------------------------------------------------------------- the bus


def bus() -> str:
    consumers = (
        f"* `{one.name}` ({one.stream}, {one.ack_wait_s:g} s): {quoted(collapsed(one.filters))}"
        for one in topology.CONSUMERS
    )
    rights = (f"* {name}: {rights_of(role)}" for name, role in topology.ROLES.items())
    return page(
        "Consumers and permissions",
        "Made of `vigil.topology`.",
        "## Durable consumers\n\nEach shared by all replicas; with the time to acknowledge.\n\n"
        + "\n".join(consumers),
        "## Permissions\n\nWhat each role may publish, and the buckets that it may write.\n\n"
        + "\n".join(rights),
    )


def rights_of(role: topology.Role) -> str:
    return " ".join(part for part in (quoted(role.publishes), *role.buckets_w) if part)


def quoted(subjects: Iterable[str]) -> str:
    return " ".join(f"`{subject}`" for subject in subjects)


def collapsed(filters: Iterable[str]) -> Iterable[str]:
    """Return subjects, with one in place of those that differ by the letters of a turn."""
    return dict.fromkeys(re.sub(r"turn-\w+$", "turn-…", subject) for subject in filters)


# ---------------------------------------------------------------- all pages

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "bus": bus,
    "commands": commands.page,
    "crash-points": crash_points,
    "logs": logs,
    "metrics": metric_page,
    "notes": notes,
    "outcomes": outcomes,
    "settings": settings,
    "signals": signals,
    "spans": span_page,
    "states": states,
}
"""Name of the file -> what makes its text."""


def openapi() -> str:
    """Return what a gateway serves as /openapi.json, with an operation and a schema a line."""
    return laid_out(json.loads(app.document()), 3) + "\n"


def laid_out(value: Any, depth: int) -> str:
    """Return a value as JSON whose objects of the first levels have a line for each member."""
    if not depth or not isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    members = (f"{json.dumps(name)}: {laid_out(one, depth - 1)}" for name, one in value.items())
    return "{\n" + ",\n".join(members) + "\n}"


def asyncapi() -> str:
    """Return what a gateway serves as /asyncapi.json."""
    return (
        json.dumps(json.loads(bus_document.encoded(__version__)), indent=2, ensure_ascii=False)
        + "\n"
    )


FILES: Final[Mapping[Path, Callable[[], str]]] = {
    **{FOLDER / f"{name}.md": text for name, text in PAGES.items()},
    **{
        FOLDER / "problems" / f"{name_of(status)}.md": partial(problems.page_of, status)
        for status in problems.PROBLEMS
    },
    FOLDER.parent / "openapi.json": openapi,
    FOLDER.parent / "asyncapi.json": asyncapi,
    FOLDER.parents[1] / "deploy" / "vigil.1": commands.manual,
}


def write() -> None:
    for file, text in FILES.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text(), "utf-8")


if __name__ == "__main__":
    write()
