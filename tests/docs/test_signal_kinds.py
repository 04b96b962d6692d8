"""The kinds of signals in docs/api.md are those of the code, with the same meaning."""

from __future__ import annotations

import re

from tests.docs.test_docs import section
from vigil.signals.kinds import KINDS


def test_every_kind_of_signal_is_listed_with_its_meaning() -> None:
    """C-4, P-7: what an outside program may filter by."""
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (.*) \|$", section("api.md", "Signals"), re.MULTILINE)
    assert dict(rows) == {kind: row.meaning for kind, row in KINDS.items()}
