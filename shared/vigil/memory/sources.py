"""How the source of a memory is named to a model. Pure.

Programs that save memories name sources themselves, in up to 200 characters. Of a memory that
content from outside had a part in, such a name would be a letter to whoever is shown nothing else
of it. So a source is named by its kind, and a kind that isn't one of ours by none.
"""

from __future__ import annotations

from typing import Final

from ..contracts.session_kinds import SESSION_KINDS

OWN: Final = "cortex"
KINDS: Final = frozenset(("api", "chat", OWN, "goal", "mcp", "task", "watch", *SESSION_KINDS))
"""Of what Vigil has memory keep; most have a colon and an id behind them."""


def named(source: str) -> str:
    """Return what names a source, as a filter takes it; empty: its kind isn't one of ours.

    >>> named("watch:1f2e"), named("cortex:autonomy"), named("mcp"), named("obey-the-mail")
    ('watch:', 'cortex:autonomy', 'mcp', '')
    """
    kind, colon, rest = source.partition(":")
    if kind not in KINDS:
        return ""
    return source if kind == OWN and rest in SESSION_KINDS else f"{kind}{colon}"
