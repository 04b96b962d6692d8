"""Servers of the catalogue: searched for on the page of servers, and what a form says of one."""

from __future__ import annotations

import re
from typing import Any, Final

from ....http.problem import Problem
from ....servers.catalogue import FoundServers
from ...visit import Visit

NAME_MAX: Final = 32
_PREFIXES: Final = {"env": "env.", "headers": "header.", "secrets": "secret."}
"""What a server is given -> how the fields of forms begin that hold it."""


async def searched(visit: Visit) -> dict[str, Any]:
    """Return what the catalogue has for the words that somebody asks for, or why it can't tell."""
    words = visit.query.get("words", "").strip()
    shown: dict[str, Any] = {"words": words, "catalogue": None, "no_catalogue": ""}
    if words:
        try:
            shown["catalogue"] = await visit.api.get(FoundServers, "/api/catalogue", words=words)
        except Problem as problem:  # the registry is away: what there is is shown all the same
            shown["no_catalogue"] = problem.detail
    return shown


def proposed_name(published: str) -> str:
    """Return what a server may be called here, by its name in the catalogue.

    >>> proposed_name("io.github.ann/Files_of mine"), proposed_name("com.example/__")
    ('Files-of-mine', 'server')
    """
    last = published.rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9]+", "-", last)[:NAME_MAX].strip("-") or "server"


def given(visit: Visit) -> dict[str, dict[str, str]]:
    """Return the variables and headers of a form; what is left empty isn't given."""
    return {
        kind: {
            name.removeprefix(prefix): value
            for name, value in visit.form.items()
            if name.startswith(prefix) and value
        }
        for kind, prefix in _PREFIXES.items()
    }
