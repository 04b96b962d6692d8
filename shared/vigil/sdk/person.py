"""What `vigil.Client` can do with what holds for a person: /api/person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from .method_group import MethodGroup

PATH: Final = "/api/person"
COST: Final = "/api/cost"


class PersonCalls(MethodGroup):
    """Base of `vigil.Client`: one's zone, language, quiet hours, channel, digest hour and pause."""

    def person(self) -> dict[str, Any]:
        """Return what holds for the caller, which of it is their `own`, and its `revision`."""
        return self._object("GET", PATH)

    def cost(self, by: Sequence[str] = ("day",), *, days: int = 7) -> dict[str, Any]:
        """Return what calls of models came to: one's own, or with an admin token everybody's.

        Args:
            by: what has a line each: `day`, `agent`, `person`, `cause`, `tier`, `model`.
            days: 1..400 UTC days up to today.
        """
        return self._object("GET", f"{COST}?{urlencode({'by': by, 'days': days}, doseq=True)}")

    def set_person(
        self, values: Mapping[str, str | None], *, revision: int | None = None
    ) -> dict[str, Any]:
        """Set what holds for the caller, without a restart; return all of it.

        Raises: ApiError with status 412, if it isn't `revision` now; 422, naming the field.

        Args:
            values: `timezone`, `language`, `quiet_hours`, `channel`, `digest_at`, `pause`; None:
                as configured again.
            revision: as it was read. None: whatever is there.
        """
        headers = {} if revision is None else {"If-Match": f'"{revision}"'}
        return self._object("PATCH", PATH, dict(values), headers=headers)
