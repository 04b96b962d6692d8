"""The base of sections, and the numbers that they have in common. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
PositiveS = Annotated[float, msgspec.Meta(gt=0)]
NotNegativeF = Annotated[float, msgspec.Meta(ge=0)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the sections: an unknown key is an error, so a typing mistake can't hide."""
