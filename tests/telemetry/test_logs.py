"""Structured logs: a test over the source, and what a line carries."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.support.sources import nodes
from vigil.observe import logs, trace

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def lines() -> Iterator[tuple[str, ast.Call]]:
    """Yield every call that writes a log line, with its file."""
    for path, node in nodes(ast.Call, where=r"\blog\."):
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "log" and node.func.attr in LEVELS:
                yield path, node


def test_every_log_line_has_an_action_and_a_fixed_event() -> None:
    """X-7: what happened is a constant, what it happened to is in fields."""
    count, bad = 0, []
    for path, call in lines():
        count += 1
        has_action = any(keyword.arg == "action" for keyword in call.keywords)
        is_constant = (
            len(call.args) == 1
            and isinstance(call.args[0], ast.Constant)
            and isinstance(call.args[0].value, str)
        )
        if not (has_action and is_constant):
            bad.append(f"{path}:{call.lineno}")
    assert count > 50
    assert bad == []


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    before = structlog.get_config()
    logs.configure(stream=stream)
    yield stream
    structlog.configure(**before)


def test_a_line_carries_the_trace_that_it_belongs_to(output: io.StringIO) -> None:
    """X-7: and none where nothing is worked on."""
    log = structlog.get_logger("test")
    log.info("before", action="test.before")
    header = trace.new()
    token = trace.current.set(header)
    try:
        log.info("within", action="test.within")
    finally:
        trace.current.reset(token)
    before, within = map(json.loads, output.getvalue().splitlines())
    assert "trace_id" not in before
    assert within["trace_id"] == header[3:35]
    assert within["action"] == "test.within"


def test_a_log_on_a_full_disk_ends_nobody(output: io.StringIO) -> None:
    """X-6: lines are lost there, and nothing else; a watch over the disk logs, too."""
    full = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115 - closing it fails, too
    logs.configure(stream=full)
    structlog.get_logger("test").error("lost", action="test.lost")
    with pytest.raises(OSError, match="No space left"):
        full.close()
