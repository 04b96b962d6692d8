"""`cost`: what calls of models came to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

import typer

from .. import options, output, tables
from ..tables import Column, Result

MICRO: Final = 1_000_000
COLUMNS: Final = (
    *(Column(name.upper(), name) for name in ("day", "agent", "person")),
    Column("CAUSE", lambda line: line["cause_name"] or line["cause"]),
    *(Column(name.upper(), name) for name in ("tier", "model")),
    Column("CALLS", "calls"),
    Column("INPUT", "input_tokens"),
    Column("CACHED", "cache_read_tokens"),
    Column("STORED", "cache_write_tokens"),
    Column("OUTPUT", "output_tokens"),
    Column("USD", lambda line: f"{line['micro_usd'] / MICRO:.4f}"),
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
    days: Annotated[int, typer.Option(min=1, max=400, help="UTC days up to today.")] = 7,
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
            f"Reserved, not settled yet: {found['reserved_tokens']} tokens, {usd:.4f} USD."
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
