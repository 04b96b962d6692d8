"""What every embedder gives, and the default one; the others have files of their own."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import random
import socket
import sys
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from services.memory.embedding import codebook
from services.memory.embedding.choice import choose
from services.memory.embedding.onnx import OnnxEmbedder
from services.memory.embedding.openai import OpenAIEmbedder
from services.memory.embedding.unit import unit
from services.memory.embedding.wordllama import INLINE_CHARACTERS_MAX, WordLlamaEmbedder
from tests.support.examples import repeats
from tests.support.models import write_model
from vigil import distribution
from vigil.errors import ConfigError
from vigil.settings.config import load

TEXTS = (
    "My sister Caroline loves roses and gardening.", "The database migration failed on Monday",
    "今天天气很好，我去公园散步", "Моя сестра любит садоводство", "😀🎉🚀", "a", "x" * 5000,
    "</s> <unk> [PAD]", "nul\0byte", "\u202eright to left", "lone \ud800 surrogate",
)  # fmt: skip
IS_THERE = pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None,
    reason="the package that the default embedder's words are from is for Pythons below 3.14",
)


@pytest.fixture
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


async def test_vectors_are_of_unit_norm_and_always_the_same(embedder: WordLlamaEmbedder) -> None:
    assert (embedder.name, embedder.dimension) == ("wordllama-l2-256", 256)
    vectors = await embedder.embed(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 256), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    alone = [(await WordLlamaEmbedder().embed([text]))[0] for text in TEXTS]
    assert (np.array(alone) == vectors).all()
    assert (await embedder.embed(TEXTS, is_query=True) == vectors).all()


async def test_a_text_without_a_word_is_zero(embedder: WordLlamaEmbedder) -> None:
    vectors = await embedder.embed(["", " ", "\n\t", "word"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([0, 0, 0, 1], abs=1e-5)
    assert (await embedder.embed([])).shape == (0, 256)


@IS_THERE
async def test_they_are_the_vectors_of_the_library(embedder: WordLlamaEmbedder) -> None:
    """Read without its package, which pads, downloads and sets up logging."""
    handlers, level = list(logging.root.handlers), logging.root.level
    try:
        from wordllama import WordLlama
    finally:
        logging.root.handlers[:], logging.root.level = handlers, level
    folder = Path(sys.modules["wordllama"].__file__ or "").parent
    library = WordLlama.load(cache_dir=folder, disable_download=True)
    texts = [text for text in TEXTS if text.isprintable() and "\ud800" not in text]
    expected = library.embed(texts, norm=True)
    assert await embedder.embed(texts) == pytest.approx(expected, abs=1e-6)


def _random_texts() -> Iterator[str]:
    rolled = random.Random(69)
    alphabets = (
        "".join(text for text in TEXTS if "\ud800" not in text),
        "     ab", "▁ a", "=-_ ", "今天天气很好 ,", "Моя сестра ", "😀🎉a\ufe0f ", "</s><unk> ",
        "".join(map(chr, range(1, 3000))), "\n\t\r\xa0\u3000 x{}",
    )  # fmt: skip
    for number in range(repeats(30_000, fast=400)):
        alphabet = alphabets[number % len(alphabets)]
        yield "".join(rolled.choices(alphabet, k=rolled.randrange(40)))


@pytest.mark.repeated
def test_tokens_are_those_of_the_library() -> None:
    """Each token by itself (else each tenth), beside others, and whatever stands in texts."""
    files = distribution.weights()
    assert files is not None
    library = Tokenizer.from_file(str(files["l2_supercat_tokenizer_config.json"]))
    library.no_padding()
    library.no_truncation()
    whole = codebook.load()
    tokens = [token.replace("▁", " ") for token in library.get_vocab()]
    part = repeats(1, fast=20)
    beside = [" ".join(tokens[at : at + 20]) for at in range(0, len(tokens), 20 * part)]
    joined = ["".join(tokens[at : at + 20]) for at in range(7, len(tokens), 60 * part)]
    texts = [*beside, *joined, *_random_texts(), "x" * 3000, "=" * 3000, " " * 100, ""]
    for text, found in zip(
        texts, library.encode_batch(texts, add_special_tokens=False), strict=True
    ):
        assert whole.tokens(text) == found.ids, text


async def test_what_means_the_same_is_nearer(embedder: WordLlamaEmbedder) -> None:
    question, near, far = await embedder.embed(
        [
            "What flowers does my sister like?",
            "Caroline loves roses; my sister has a garden",
            "The invoice is due in March",
        ]
    )
    assert question @ near > question @ far + 0.2


class Waiting(codebook.Codebook):
    """Gives no token before `seen` is set, so embedding in the loop would never end."""

    def __init__(self) -> None:
        whole = codebook.load()
        super().__init__(whole.pieces, whole.weights)
        self.began, self.seen = threading.Event(), threading.Event()

    def tokens(self, text: str) -> list[int]:
        self.began.set()
        assert self.seen.wait(60), "the loop did nothing meanwhile"
        return super().tokens(text)


async def test_long_batches_leave_the_loop_alone(embedder: WordLlamaEmbedder) -> None:
    """And a text of 16 kB among short ones isn't what all are padded to."""
    texts = ["word " * 3000, *["short text"] * 500]
    assert sum(map(len, texts)) > INLINE_CHARACTERS_MAX
    waiting = Waiting()
    embedding = asyncio.create_task(WordLlamaEmbedder(waiting).embed(texts))
    assert await asyncio.to_thread(waiting.began.wait, 60)
    waiting.seen.set()
    assert (await embedding)[1:] == pytest.approx(await embedder.embed(texts[1:]), abs=1e-6)


async def test_nothing_is_fetched_and_logging_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ARCHITECTURE 6: the first run needs no network."""

    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    handlers = list(logging.root.handlers)
    codebook.load.cache_clear()
    await WordLlamaEmbedder().embed(["hello"])
    assert logging.root.handlers == handlers


@IS_THERE
def test_the_weights_come_with_the_wheel() -> None:
    """docs/memory.md says where they are from; this is the version it says it of."""
    told = metadata.metadata("wordllama")
    assert told["License"].startswith("MIT License")
    files = {str(file) for file in metadata.files("wordllama") or ()}
    assert "wordllama/weights/l2_supercat_256.safetensors" in files
    assert "LLaMA 2 70B and phi 3 medium" in (told.get_payload() or "")


def test_without_wordllama_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    codebook.load.cache_clear()
    with pytest.raises(ConfigError, match="pip install"):
        codebook.load()


def test_unit_norm() -> None:
    given = np.array([[3.0, 4.0], [0.0, 0.0], [1e-9, 0.0]], np.float32)
    assert unit(given).tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0]]))


async def test_the_settings_choose(tmp_path: Path) -> None:
    home = {"VIGIL_HOME": str(tmp_path)}
    assert isinstance(choose(load(home)), WordLlamaEmbedder)
    write_model(tmp_path / "model")
    onnx = {"VIGIL_MEMORY__EMBEDDER": "onnx", "VIGIL_MEMORY__EMBEDDER_MODEL": f"{tmp_path}/model"}
    assert isinstance(choose(load(home | onnx)), OnnxEmbedder)
    openai = {
        "VIGIL_MEMORY__EMBEDDER": "openai", "VIGIL_MEMORY__EMBEDDER_MODEL": "m",
        "VIGIL_MEMORY__EMBEDDER_URL": "http://models.test/v1", "EMBEDDER_API_KEY": "k3y",
    }  # fmt: skip
    chosen = choose(load(home | openai))
    assert isinstance(chosen, OpenAIEmbedder)
    assert repr(chosen) == "OpenAIEmbedder('models.test', 'm')"
    await chosen.close()


@pytest.mark.parametrize(
    ("embedder", "model", "url", "told"),
    [
        ("onnx", "", "", "embedder_model"),
        ("onnx", "no-such-model", "", "neither a folder nor a model of fastembed"),
        ("openai", "m", "", "embedder_url"),
        ("openai", "", "http://models.test/v1", "embedder_model"),
        ("openai", "m", "models.test/v1", "embedder_url"),
    ],
)
def test_what_is_missing_is_told(
    tmp_path: Path, embedder: str, model: str, url: str, told: str
) -> None:
    settings = load({
        "VIGIL_HOME": str(tmp_path), "VIGIL_MEMORY__EMBEDDER": embedder,
        "VIGIL_MEMORY__EMBEDDER_MODEL": model, "VIGIL_MEMORY__EMBEDDER_URL": url,
    })  # fmt: skip
    with pytest.raises(ConfigError, match=told):
        choose(settings)
