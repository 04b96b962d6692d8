"""A machine without WordLlama, as Python 3.14 is: memory works by full text, and says so."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.memory.embedding import codebook
from services.memory.embedding.choice import choose
from services.memory.recall.words import Words
from services.memory.vectors.choice import choose as choose_index
from services.memory.vectors.edge import EdgeIndex
from tests.memory import wordless
from tests.support import warm
from tests.support.cli import TIMEOUT_S, Cli, eventually
from vigil.errors import ConfigError, Unavailable
from vigil.settings.config import load


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(importlib.util, "find_spec", wordless.find_spec)
    codebook.load.cache_clear()
    yield
    codebook.load.cache_clear()


@pytest.mark.usefixtures("without")
async def test_the_embedder_says_what_is_missing(tmp_path: Path) -> None:
    embedder = choose(load({"VIGIL_HOME": str(tmp_path)}))
    assert (embedder.name, embedder.dimension) == ("without vectors", 0)
    with pytest.raises(Unavailable, match=r"WordLlama isn't installed: .*pip install"):
        await embedder.embed(["hello"])


@pytest.mark.usefixtures("without")
def test_no_word_is_close_to_another_and_old_tokens_do_no_harm() -> None:
    """Also not those of memories that were saved while it was installed."""
    words = Words()
    assert words.size == codebook.TOKENS
    assert words.tokens("a puppy") == b""
    asked = words.asked("dog")
    stored = np.array([5, 31_999], dtype=np.uint32).tobytes()
    compared = words.compare(asked, np.ones(words.size), [stored, b""])
    assert compared.words.tolist() == compared.gist.tolist() == [0.0, 0.0]


def test_what_somebody_has_set_up_must_be_there(tmp_path: Path) -> None:
    environ = {"VIGIL_HOME": str(tmp_path), "VIGIL_MEMORY__EMBEDDER": "onnx"}
    with pytest.raises(ConfigError):
        choose(load(environ))


def test_a_server_of_vectors_wants_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It's an extra: where it's missing, memory says what installs it; the engine needs none."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec",
        lambda name, *rest: None if name == "qdrant_client" else found(name, *rest),
    )  # fmt: skip
    index = choose_index(load({"VIGIL_HOME": str(tmp_path)}), tmp_path)
    assert isinstance(index, EdgeIndex)
    named = load({"VIGIL_HOME": str(tmp_path), "QDRANT_URL": "http://127.0.0.1:6333"})
    with pytest.raises(ConfigError, match=r"qdrant_url needs qdrant-client: .*\[qdrant\]"):
        choose_index(named, tmp_path)


class Wordless(Cli):
    """Runs commands where WordLlama isn't installed."""

    def _run(
        self, args: tuple[str, ...], stdin: str, environ: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return warm.run(wordless.__name__, args, env=environ, stdin=stdin, timeout_s=TIMEOUT_S)


def test_everything_runs_and_says_it(tmp_path: Path) -> None:
    """P-1, M-2: `vigil up`, a memory saved and found by its words; status, doctor and log tell."""
    cli = Wordless(tmp_path)
    try:
        cli("up", "--detach")
        cli("memory", "save", "my locker code is 4711")
        found = cli.json("memory", "search", "locker code")
        assert "4711" in found["memories"][0]["content"]
        assert found["degraded"] == ["vectors"]
        assert "memory DEGRADED: recall goes by full text alone" in cli("status").stdout
        log = cli.home / "logs" / "up.log"
        eventually(lambda: "memory.vectors_wait" in log.read_text())
        assert log.read_text().count("memory.without_words") == 1
        doctor = cli("doctor", code=None)
        assert "warn  wordllama" in doctor.stdout
        assert "pip install" in doctor.stdout
    finally:
        cli.end()
