"""Outcomes, notes, endings and states have one home, with a row for each word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from services.gateway.why import stories
from tests.docs import reference
from tests.support.sources import texts, tree
from tests.support.why import KEY, Log
from vigil.contracts import ApprovalState, JobStatus, Note, Outcome, ReceiptOutcome, TaskStatus
from vigil.contracts.board.vocabulary import GOALS, TASKS, GoalStatus
from vigil.contracts.notes import NOTES, NoteWords
from vigil.contracts.vocabulary import APPROVALS, ENDINGS, JOBS, OUTCOMES, RECEIPTS, Ending
from vigil.signals.sources import project

ROOT: Final = Path(__file__).parents[2]


def note_codes() -> set[str]:
    """Return the codes that the core writes; those of the gates are made of two parts."""
    files = (ROOT / "services" / "cortex").rglob("*.py")
    text = "\n".join(file.read_text("utf-8") for file in files)
    written = set(re.findall(r'\bnote\(\s*"(\w+)"', text))
    refusals = set(re.findall(r'\bBlocked\(\s*"(\w+)"', text))
    return written | {f"blocked_{code}" for code in refusals}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (OUTCOMES, Outcome),
        (RECEIPTS, ReceiptOutcome),
        (APPROVALS, ApprovalState),
        (JOBS, JobStatus),
        (TASKS, TaskStatus),
        (GOALS, GoalStatus),
        (ENDINGS, Ending),
    ],
)
def test_every_word_has_a_row(words: Mapping[str, Any], names: Any) -> None:
    assert tuple(words) == get_args(names)


def test_the_codes_of_notes_are_those_that_the_core_writes() -> None:
    """D-3: a code without a row fails here, and a row without a code, too."""
    assert list(NOTES) == sorted(note_codes())


# ---------------------------------------------------------------- one row is enough


def test_a_new_note_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-4, D-3: its signal, its sentence and the end of its story come out of the row."""
    row = NoteWords(
        "the cat sat on it", "{about} waits for the cat: {text}.", "held",
        signal=("error.event", "A cat is in the way"),
    )  # fmt: skip
    monkeypatch.setitem(NOTES, "toy_cat", row)
    log = Log()
    event = log.external(source="bus:home", content="feed it")
    note = Note(code="toy_cat", text="it sleeps", subject=event.id)
    seq = log.turn(event, "ignored", notes=(note,), ended=(event.id,))
    fact = log.fact(event.seq)
    assert fact is not None
    answer = log.why(stories.of_record(KEY, fact))
    assert (answer.verdict, answer.summary) == ("held", "It was held back: it sleeps.")
    assert "It waits for the cat: it sleeps." in [step.text for step in answer.steps]
    subject, data = log.records[seq - 1]
    signals = project("SESSIONS", seq, subject, data)
    assert [(s.kind, s.text) for s in signals][-1] == (
        "error.event", "A cat is in the way: it sleeps",
    )  # fmt: skip
    assert re.search(r"^    toy_cat +the cat sat on it$", reference.notes(), re.MULTILINE)


def tables_of_words(path: str, text: str) -> Iterator[int]:
    """Yield the lines where a dict has a row for most of the outcomes, notes, states or endings."""
    known = [set(words) for words in (OUTCOMES, RECEIPTS, APPROVALS, JOBS, ENDINGS, NOTES)]
    known = [one for one in known if 2 * sum(f'"{word}"' in text for word in one) > len(one)]
    for node in ast.walk(tree(path)) if known else ():
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if any(keys <= words and 2 * len(keys) > len(words) for words in known):
                yield node.lineno


def test_nobody_else_has_such_a_table() -> None:
    """A second table would have to be changed with the first."""
    homes = {f"shared/vigil/contracts/{name}.py" for name in ("vocabulary", "notes")}
    found = {path for path, text in texts().items() if any(tables_of_words(path, text))}
    assert found == homes
