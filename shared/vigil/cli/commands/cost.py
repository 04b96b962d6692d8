"""`cost`, `budget`: what calls of models came to, what is left of today, and more of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.settings.models import raises
from vigil.words.amounts import count_of

from .. import options, output, tables, wall
from ..registry import CommandLine, ShownGroup
from ..tables import Column, Result

MICRO: Final = 1_000_000


def _usd(line: Mapping[str, Any]) -> str:
    """Return what a line came to; empty: no price is known of any of its calls.

    >>> _usd({"calls": 2, "calls_unpriced": 1, "micro_usd": 1200})
    '0.0012'
    >>> _usd({"calls": 2, "calls_unpriced": 2, "micro_usd": 0})
    ''
    """
    is_known = line["calls_unpriced"] < line["calls"]
    return f"{line['micro_usd'] / MICRO:.4f}" if is_known else ""


COLUMNS: Final = (
    *(Column(name.upper(), name) for name in ("day", "agent", "person")),
    Column("CAUSE", lambda line: line["cause_name"] or line["cause"]),
    *(Column(name.upper(), name) for name in ("tier", "model")),
    Column("CALLS", "calls"),
    Column("INPUT", "input_tokens"),
    Column("CACHED", "cache_read_tokens"),
    Column("STORED", "cache_write_tokens"),
    Column("OUTPUT", "output_tokens"),
    Column("USD", _usd),
    Column("WITHOUT A PRICE", lambda line: line["calls_unpriced"] or ""),
    Column("CACHED SHARE", lambda line: f"{line['cached_share']:.0%}"),
)
FIELDS: Final = (
    *("day", "agent", "person", "cause", "cause_name", "tier", "model", "calls", "calls_unpriced"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "micro_usd"),
    "cached_share",
)
"""Of CSV: the fields of a line as `GET /api/cost` has them, also if there is no line."""


def cost(
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="day, agent, person, cause, tier, model. Default: day."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=400, help="Days up to today.")] = 7,
    csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,
) -> Result:
    """Show what calls of models came to: yours and your teams', with an admin token everybody's."""
    found = options.client().cost(by or ["day"], days=days)
    return Result(found, partial(_csv if csv else _show, found))


def _show(found: Mapping[str, Any]) -> None:
    lines = found["lines"]
    if lines:
        shown = [one for one in COLUMNS if any(one.value(line) for line in lines)]
        tables.table(shown, lines)
    else:
        output.message("No calls.")
    if found["reserved_tokens"]:
        usd = found["reserved_micro_usd"] / MICRO
        output.message(
            f"Reserved, not settled yet: {count_of(found['reserved_tokens'], 'token')}, "
            f"{usd:.4f} USD."
        )


def _csv(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _cell(v) for k, v in line.items()} for line in found["lines"])
    output.data(text.getvalue().rstrip("\n"))


def _cell(value: Any) -> Any:
    """Return a value that no spreadsheet takes for a formula: a name may begin like one.

    Source: OWASP, CSV Injection.

    >>> _cell("=1+1"), _cell("me"), _cell(-1)
    ("'=1+1", 'me', -1)
    """
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


# ---------------------------------------------------------------- what is left of today


def _used(item: Mapping[str, Any]) -> str:
    money = item["micro_usd_used"] / MICRO
    most = item["micro_usd_max"]
    usd = f"{money:.4f} USD" if most is None else f"{money:.4f} of {most / MICRO:.4f} USD"
    return f"{item['tokens_used']:,} of {item['tokens_max']:,} tokens, {usd}"


def _raised(item: Mapping[str, Any]) -> str:
    """Say how often a limit was raised today, and whether it can be again.

    >>> _raised({"times_raised": 1, "times_next": None})
    'once, it may not be raised further (budget.raise_max)'
    """
    times, more = item["times_raised"], item["times_next"]
    most = "it may not be raised further (budget.raise_max)"
    ways = most if more is None else "`vigil budget raise` gives more"
    often = {0: "no", 1: "once"}.get(times, f"{times} times")
    return f"{often}, {ways}"


OWN: Final = (
    Column("day", "day"),
    Column("resets at", lambda item: wall.zoned(item["resets_at"])),
    Column("used", _used),
    Column("reserved", "tokens_reserved"),
    Column("raised", _raised),
)
budget: Final = CommandLine(
    cls=ShownGroup, help="What is left of today, and more of it: show, raise. Default: show."
)


@budget.command()
def show() -> Result:
    """Show what you used today of what you may."""
    return _own(options.client().budget())


@budget.command("raise")
def raise_(
    agent: Annotated[str, typer.Option(help="This agent's limit. Needs an admin token.")] = "",
    is_for_all: Annotated[
        bool, typer.Option("--all", help="The instance's limit. Needs an admin token.")
    ] = False,
    times: Annotated[
        int | None,
        typer.Option(min=0, max=1000, help="So often it is added in all; 0: as configured."),
    ] = None,
) -> Result:
    """Raise your limit of today by what it is, at once. `budget.raise_max` bounds it."""
    client = options.client()
    if times is None:
        times = 1 if agent or is_for_all else client.budget()["times_next"]
    if times is None:
        raise typer.BadParameter("it may not be raised further today: budget.raise_max")
    found = client.raise_budget(times, agent=agent, is_for_all=is_for_all)
    if not (agent or is_for_all):
        return _own(found)
    whose = "of the instance" if is_for_all else f"of {agent}"
    most = found["caps"]["raise_max"]
    facts = {"times_raised": raises.counted(times, most), "factor": raises.factor(times, most)}
    return tables.done(f"Today the limit {whose} is {_by(times, most)}.", facts)


def _by(times: int, most: float) -> str:
    """Say what a raise makes of a limit, and what makes more of it.

    >>> _by(0, 2.0), _by(5, 1.0)
    ('as configured', 'as configured; budget.raise_max allows no more')
    >>> _by(5, 2.0)
    '2 times what is configured; budget.raise_max allows no more'
    >>> _by(1, 10.0)
    '2 times what is configured; `--times 2` makes it 3 times'
    """
    if not times:
        return "as configured"
    factor, further = raises.factor(times, most), raises.next_times(times, most)
    more = "budget.raise_max allows no more"
    if further is not None:
        more = f"`--times {further}` makes it {raises.factor(further, most):g} times"
    is_now = f"{factor:g} times what is configured" if factor > 1 else "as configured"
    return f"{is_now}; {more}"


def _own(found: Mapping[str, Any]) -> Result:
    return Result(found, partial(tables.fields, OWN, found))
