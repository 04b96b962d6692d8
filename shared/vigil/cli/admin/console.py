"""`vigil console`: a link that signs a browser in, and the browsers that are signed in."""

from __future__ import annotations

import sys
import webbrowser
from functools import partial
from typing import Annotated, Final

import typer

from .. import options, output, prefixes, tables
from ..tables import Column, Result

COLUMNS: Final = (
    Column("ID", "id"),
    Column("BROWSER", "name"),
    Column("SIGNED IN", "created_at", is_instant=True),
    Column("ENDS", "expires_at", is_instant=True),
)


def console(
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the link, and open no browser.")
    ] = False,
    browsers: Annotated[
        bool, typer.Option("--browsers", help="List where you are signed in.")
    ] = False,
    sign_out: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Sign that browser out; the beginning of its id will do."),
    ] = None,
) -> Result:
    """Look at everything, and decide, in a browser. The link is good once, for two minutes."""
    client = options.client()
    if sign_out is not None:
        there = [one["id"] for one in client.browsers()]
        ended = client.end_browser(prefixes.whole("browser", sign_out, there))
        return tables.done(f"Signed {ended['name']} out.", ended)
    if browsers:
        found = client.browsers()
        return tables.listing("browsers", found, COLUMNS, empty="No browser is signed in.")
    made = client.console_link()
    url = made.get("url") or client.url + made["path"]
    show = partial(_open, url, is_opened=sys.stdout.isatty() and not only_print)
    return Result({"url": url, "expires_at": made["expires_at"]}, show)


def _open(url: str, *, is_opened: bool) -> None:
    output.data(url)
    if is_opened and webbrowser.open(url):
        output.message("Opened in your browser.")
    else:
        output.message("Open it in a browser within two minutes; it is good once.")
