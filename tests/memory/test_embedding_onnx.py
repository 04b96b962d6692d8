"""Sentence models in ONNX, on models so small that a test knows what must come out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from services.memory.embedding.onnx import TEXTS_MAX, FastembedEmbedder, OnnxEmbedder, load
from tests.support.models import DIMENSION, WORDS, table, write_model
from vigil.errors import ConfigError, Unavailable


def mean(*words: str) -> list[float]:
    """The unit vector of the mean of words, with the [CLS] that comes before."""
    vector = table()[[2, *(WORDS.index(word) for word in words)]].mean(axis=0)
    return list(vector / np.linalg.norm(vector))


async def test_the_mean_of_the_tokens_of_unit_norm(tmp_path: Path) -> None:
    """Padding does not count, whatever else is in the batch."""
    embedder = load(str(write_model(tmp_path)))
    texts = ["the cat sat", "dog", "", "unheard of", "the " * 100]
    vectors = await embedder.embed(texts)
    assert vectors.dtype == np.float32
    expected = [
        mean("the", "cat", "sat"), mean("dog"), [0.0] * DIMENSION, mean("[UNK]", "[UNK]"),
        mean(*["the"] * 100),
    ]  # fmt: skip
    assert vectors == pytest.approx(np.array(expected), abs=1e-5)
    alone = [(await embedder.embed([text]))[0] for text in texts]
    assert np.array(alone) == pytest.approx(vectors, abs=1e-6)


async def test_more_texts_than_one_run_takes_keep_their_order(tmp_path: Path) -> None:
    embedder = OnnxEmbedder.load(write_model(tmp_path))
    texts = ["cat " * (1 + n % 7) + "dog" for n in range(3 * TEXTS_MAX + 1)]
    vectors = await embedder.embed(texts)
    expected = [mean(*text.split()) for text in texts]
    assert vectors == pytest.approx(np.array(expected), abs=1e-5)


async def test_a_text_that_is_too_long_is_cut(tmp_path: Path) -> None:
    embedder = OnnxEmbedder.load(write_model(tmp_path))
    (vector,) = await embedder.embed(["cat " * 16000])
    assert vector == pytest.approx(np.array(mean(*["cat"] * 511)), abs=1e-4)


async def test_a_model_that_pools_itself_and_one_that_wants_types(tmp_path: Path) -> None:
    pools = OnnxEmbedder.load(write_model(tmp_path / "pools", pools=True, takes_types=True))
    (vector,) = await pools.embed(["cat dog"])
    largest = table()[[2, WORDS.index("cat"), WORDS.index("dog")]].max(axis=0)
    assert vector == pytest.approx(largest / np.linalg.norm(largest), abs=1e-5)


async def test_what_the_folder_says_about_its_use(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "document": "text: "}
    embedder = OnnxEmbedder.load(write_model(tmp_path / "prompted", prompts=prompts))
    assert (await embedder.embed(["cat"]))[0] == pytest.approx(mean("text:", "cat"), abs=1e-5)
    asked = await embedder.embed(["cat"], is_query=True)
    assert asked[0] == pytest.approx(mean("query:", "cat"), abs=1e-5)
    first = OnnxEmbedder.load(write_model(tmp_path / "first", takes_first=True))
    assert (await first.embed(["cat"]))[0] == pytest.approx(mean(), abs=1e-5)


def test_the_name_stands_for_the_bytes(tmp_path: Path) -> None:
    """Another file under the same path is another space."""
    folder = tmp_path / "minilm"
    first = OnnxEmbedder.load(write_model(folder))
    assert first.name.startswith("onnx-minilm-")
    assert first.name.endswith("-4")
    assert first.dimension == DIMENSION
    assert OnnxEmbedder.load(write_model(folder)).name == first.name
    assert OnnxEmbedder.load(write_model(folder, seed=2)).name != first.name


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_missing_or_broken_is_named(tmp_path: Path, file: str) -> None:
    write_model(tmp_path)
    (tmp_path / file).write_bytes(b"not what it should be")
    with pytest.raises(ConfigError, match="can't be used"):
        load(str(tmp_path))
    (tmp_path / file).unlink()
    with pytest.raises(ConfigError, match=f"no {file}"):
        load(str(tmp_path))


@pytest.mark.parametrize("package", ["onnxruntime", "fastembed"])
def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    write_model(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    model = str(tmp_path) if package == "onnxruntime" else "BAAI/bge-small-en-v1.5"
    with pytest.raises(ConfigError, match=r"pip install 'vigil-agents\[onnx\]'"):
        load(model)


async def test_a_model_that_cannot_be_fetched_now_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without network: saves go on, vectors wait; nothing refuses to start."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    embedder = load("BAAI/bge-small-en-v1.5")
    assert isinstance(embedder, FastembedEmbedder)
    assert (embedder.name, embedder.dimension) == ("fastembed-BAAI/bge-small-en-v1.5-384", 384)
    for _ in range(2):
        with pytest.raises(Unavailable, match="bge-small-en"):
            await embedder.embed(["hello"])
    await embedder.close()
