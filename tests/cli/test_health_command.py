"""`vigil health`, of what the gateway really answers: it leaves out what is as by default."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from services.gateway.work.health import CircuitView, HealthView, SessionHealth
from vigil.cli.admin import health

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)


def test_what_has_recovered_is_listed_beside_what_has_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """C-5: a circuit that was closed or reset has neither a reason nor a beginning any more."""
    circuits = (
        CircuitView(
            name="mcp:a", state="open", reason="away", opened_at=NOW, changed_at=NOW,
            until=NOW + timedelta(minutes=1),
        ),
        CircuitView(name="mcp:b", state="closed", changed_at=NOW),
        CircuitView(name="mcp:c", state="half_open", reason="slow", changed_at=NOW),
    )  # fmt: skip
    answer = HealthView(circuits=circuits, sessions=(), branches=None)
    health._show(msgspec.json.decode(msgspec.json.encode(answer)))
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split()[:2] for row in rows] == [
        ["mcp:a", "open"], ["mcp:b", "closed"], ["mcp:c", "half"],
    ]  # fmt: skip
    assert rows[0].endswith("away")


def test_how_long_a_session_hangs_is_said_in_the_unit_that_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hanging = SessionHealth(session_key="ann:vigil:t1", stuck_s=5437)
    answer = HealthView(circuits=(), sessions=(hanging,), branches=None)
    health._show(msgspec.json.decode(msgspec.json.encode(answer)))
    assert "hangs for 91 min, and is reopened" in capsys.readouterr().out
