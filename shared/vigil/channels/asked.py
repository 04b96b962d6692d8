"""What somebody is asked who adds a channel by a form or a command, instead of by an editor."""

from __future__ import annotations

from typing import NamedTuple


class AskedField(NamedTuple):
    """A field of a kind's section that somebody has to give, or may."""

    name: str
    """As in the section. A secret is kept in a file of its own, and the section has
    ``{name}_file``."""
    label: str
    """What it's called where it is asked for."""
    hint: str = ""
    """What it looks like."""
    is_secret: bool = False
    is_needed: bool = True
