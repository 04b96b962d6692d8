"""What the methods of `vigil.Client` have in common: how requests are made of what is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import UNSET


class MethodGroup(ABC):
    """Base of the groups: jobs, tasks, approvals, grants, memories."""

    @abstractmethod
    def _object(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Make a request, as `vigil.Client` does, whose answer is an object."""

    @abstractmethod
    def request(self, method: str, path: str) -> Any:
        """Make a request, as `vigil.Client` does."""


def segment(text: str) -> str:
    """Return a text as one segment of a path.

    >>> segment("ann:vigil:t/1")
    'ann:vigil:t%2F1'
    """
    return quote(text, safe=":")


def given(**values: Any) -> dict[str, Any]:
    """Return what isn't None, with instants as text; what is `UNSET` is said to be none.

    >>> given(text="", user=None, watch=UNSET)
    {'text': '', 'watch': None}
    """
    return {name: plain(value) for name, value in values.items() if value is not None}


def match(revision: int | None) -> dict[str, str]:
    """Return the header that names the revision that was read. None: whatever is there.

    >>> match(41), match(None)
    ({'If-Match': '"41"'}, {})
    """
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def plain(value: Any) -> Any:
    if value is UNSET:
        return None
    return value.isoformat() if isinstance(value, datetime) else value


def query(values: Mapping[str, Any]) -> str:
    """Return what isn't None as a query string, with its question mark.

    >>> query({"q": "a b", "limit": None, "with_ended": True}), query({})
    ('?q=a+b&with_ended=true', '')
    """
    found = {name: _parameter(value) for name, value in given(**values).items()}
    return f"?{urlencode(found)}" if found else ""


def _parameter(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else value
