"""What libraries log by themselves, in the form of our own lines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from vigil.observe import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    before = structlog.get_config()
    logs.configure(stream=stream)
    yield stream
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_failure_of_a_library_is_one_line_with_its_place(stream: io.StringIO) -> None:
    """X-7: JSON with an action, the secret in it masked, the traceback a place."""
    logger = logging.getLogger("somebody.else")
    try:
        raise ValueError("pat_abcdefghijklmnopqrst\nand more")
    except ValueError:
        logger.exception("It failed: %s\n", "badly")
    logger.warning("plain %d", 5)
    logger.info("not told")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["action"] == "library"
    assert (first["logger"], first["level"], first["event"]) == (
        "somebody.else", "error", "It failed: badly"
    )  # fmt: skip
    assert first["error"].startswith("ValueError: pat_abcd… and more (test_library_logs.py:")
    assert "Traceback" not in stream.getvalue()
    assert (second["event"], second["level"]) == ("plain 5", "warning")


def test_a_line_that_can_not_be_made_breaks_nothing(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("x").warning("%d", "no number")
    assert stream.getvalue() == ""
