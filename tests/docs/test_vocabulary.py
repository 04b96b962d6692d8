"""Outcomes, notes, endings and crash points have one home: the tables of the docs are made of it.

After a change of a row, write the tables of the docs anew:

    .venv/bin/python -c 'from tests.docs.test_vocabulary import write; write()'
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from services.gateway.why import stories
from tests.docs.test_docs import note_codes
from tests.support.why import KEY, Log
from vigil import crash
from vigil.contracts import ApprovalState, JobStatus, Note, Outcome, ReceiptOutcome
from vigil.contracts.notes import NOTES, NoteWords
from vigil.contracts.vocabulary import APPROVALS, ENDINGS, JOBS, OUTCOMES, RECEIPTS, Ending
from vigil.signals.sources import project

ROOT: Final = Path(__file__).parents[2]
TABLES: Final[dict[tuple[str, str], Mapping[Any, Any]]] = {
    ("reference/outcomes.md", "# Outcomes of turns"): OUTCOMES,
    ("reference/notes.md", "# Notes of turns"): NOTES,
    ("reference/crash-points.md", "# Crash points"): crash.POINTS,
    ("why.md", "## Verdicts"): ENDINGS,
}
"""Page and heading -> the words whose meanings the table under it lists."""
_TABLE: Final = re.compile(r"(\|[^\n]*\n\|---[^\n]*\n)((?:\|[^\n]*\n)*)")


def rows(words: Mapping[Any, Any]) -> str:
    return "".join(f"| `{word}` | {cells(row)} |\n" for word, row in words.items())


def cells(row: Any) -> str:
    """Return what is beside a word: a point's two sentences, or the meaning of a row."""
    return str(row.meaning) if hasattr(row, "meaning") else " | ".join(row)


def cut(page: str, heading: str) -> tuple[str, str, str]:
    """Return what is before the rows of the table under a heading, the rows, and what follows."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    found = _TABLE.search(text, f"\n{text}".index(f"\n{heading}\n"))
    assert found is not None, heading
    return text[: found.start(2)], found[2], text[found.end(2) :]


def write() -> None:
    """Write the rows of the tables."""
    for (page, heading), words in TABLES.items():
        before, _, after = cut(page, heading)
        (ROOT / "docs" / page).write_text(before + rows(words) + after, "utf-8")


@pytest.mark.parametrize(("page", "heading"), TABLES)
def test_the_tables_of_the_docs_are_the_code(page: str, heading: str) -> None:
    assert cut(page, heading)[1] == rows(TABLES[page, heading])


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (OUTCOMES, Outcome),
        (RECEIPTS, ReceiptOutcome),
        (APPROVALS, ApprovalState),
        (JOBS, JobStatus),
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
    assert "| `toy_cat` | the cat sat on it |" in rows(NOTES)


def tables_of_words(file: Path) -> Iterator[int]:
    """Yield the lines where a dict has a row for most of the outcomes, notes, states or endings."""
    known = [set(words) for words in (OUTCOMES, RECEIPTS, APPROVALS, JOBS, ENDINGS, NOTES)]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if any(keys <= words and 2 * len(keys) > len(words) for words in known):
                yield node.lineno


def test_nobody_else_has_such_a_table() -> None:
    """A second table would have to be changed with the first."""
    homes = {ROOT / "shared/vigil/contracts" / name for name in ("vocabulary.py", "notes.py")}
    files = {*(ROOT / "shared").rglob("*.py"), *(ROOT / "services").rglob("*.py")}
    assert all(list(tables_of_words(home)) for home in homes)
    found = {str(f): lines for f in files - homes if (lines := list(tables_of_words(f)))}
    assert found == {}
