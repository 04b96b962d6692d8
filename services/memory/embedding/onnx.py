"""Sentence models in ONNX: from a folder of one's own, or one that fastembed knows and fetches.

A folder has `model.onnx` and `tokenizer.json`. Two files of the Sentence Transformers layout are
looked at if they are there: `1_Pooling/config.json` (the first token instead of the mean) and
`config_sentence_transformers.json` (what to put before a question).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from vigil import distribution
from vigil.errors import ConfigError, Unavailable

from . import Embedder, Vectors
from .unit import unit

if TYPE_CHECKING:
    from fastembed import TextEmbedding

TOKENS_MAX: Final = 512
"""Of a text, where the tokenizer's own file sets no limit: what most of these models know."""
TEXTS_MAX: Final = 16
"""Of one run: all are padded to the longest."""
INSTALL: Final = distribution.command_for("onnx")


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder says about how its model is to be used."""

    takes_first: bool = False
    """The first token's vector stands for the text; else the mean of all."""
    query_prefix: str = ""
    text_prefix: str = ""


class OnnxEmbedder:
    """See `Embedder`. A model of a folder."""

    def __init__(self, name: str, tokenizer: Any, session: Any, layout: Layout) -> None:
        self._tokenizer = tokenizer
        self._session = session
        self._layout = layout
        self._inputs = {one.name for one in session.get_inputs()}
        self.dimension = self._run(["dimension"]).shape[1]
        self.name = f"{name}-{self.dimension}"

    @classmethod
    def load(cls, folder: Path) -> OnnxEmbedder:
        """Load the model of a folder.

        Raises:
            ConfigError: a file is missing or broken, or a package isn't installed.
        """
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ConfigError(f"memory.embedder 'onnx' needs {error.name}: {INSTALL}") from error
        for file in ("model.onnx", "tokenizer.json"):
            if not (folder / file).is_file():
                raise ConfigError(f"memory.embedder_model: there is no {file} in {folder}")
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            session = onnxruntime.InferenceSession(
                folder / "model.onnx", providers=["CPUExecutionProvider"]
            )
            _limit(tokenizer)
            return cls(_name(folder), tokenizer, session, _layout(folder))
        except Exception as error:
            # Both libraries raise what their C++ and Rust parts say, without a class of its own.
            raise ConfigError(f"memory.embedder_model: {folder} can't be used: {error}") from error

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        return await asyncio.to_thread(self._embed, texts, is_query)

    async def close(self) -> None:
        """There is nothing to close."""

    def _embed(self, texts: Sequence[str], is_query: bool) -> Vectors:
        prefix = self._layout.query_prefix if is_query else self._layout.text_prefix
        return in_batches(
            texts, self.dimension, lambda some: self._run([prefix + text for text in some])
        )

    def _run(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        """Return the pooled vectors of a few texts."""
        encoded = self._tokenizer.encode_batch(list(texts))
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        feed = {
            "input_ids": np.array([one.ids for one in encoded], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([one.type_ids for one in encoded], np.int64),
        }
        given = {name: value for name, value in feed.items() if name in self._inputs}
        (states, *_) = self._session.run(None, given)
        return pooled(states, mask, takes_first=self._layout.takes_first)


class FastembedEmbedder:
    """See `Embedder`. A model that fastembed knows by name, and fetches when it is first needed.

    Until it could be fetched, everything but vectors works.
    """

    def __init__(self, model: str) -> None:
        """Raises: ConfigError: fastembed isn't installed, or doesn't know that model."""
        try:
            from fastembed import TextEmbedding
        except ImportError as error:
            raise ConfigError(f"memory.embedder 'onnx' needs fastembed: {INSTALL}") from error
        known = {one["model"]: one for one in TextEmbedding.list_supported_models()}
        if model not in known:
            raise ConfigError(
                f"memory.embedder_model: {model!r} is neither a folder nor a model of fastembed"
            )
        self._model = model
        self._loaded: TextEmbedding | None = None
        self._loading = asyncio.Lock()
        self.dimension = int(known[model]["dim"])
        self.name = f"fastembed-{model}-{self.dimension}"

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load)
            loaded = self._loaded
        embed = loaded.query_embed if is_query else loaded.embed

        def some(texts: Sequence[str]) -> npt.NDArray[Any]:
            return np.array(list(embed(list(texts))))

        return await asyncio.to_thread(in_batches, texts, self.dimension, some)

    async def close(self) -> None:
        """There is nothing to close."""

    def _load(self) -> TextEmbedding:
        from fastembed import TextEmbedding

        try:
            return TextEmbedding(self._model)
        except Exception as error:
            # Whatever its downloader met: no network, no room, no such file any more.
            raise Unavailable(f"{self._model} can't be fetched: {error}") from error


def load(model: str) -> Embedder:
    """Return the embedder of a folder, or of a name that fastembed knows. Raises: ConfigError."""
    folder = Path(model).expanduser()
    return OnnxEmbedder.load(folder) if folder.is_dir() else FastembedEmbedder(model)


def in_batches(
    texts: Sequence[str], dimension: int, run: Callable[[Sequence[str]], npt.NDArray[Any]]
) -> Vectors:
    """Embed texts, the short ones together; those without a word stay zero."""
    vectors = np.zeros((len(texts), dimension), np.float32)
    worded = sorted(
        (n for n, text in enumerate(texts) if text.strip()), key=lambda n: len(texts[n])
    )
    for start in range(0, len(worded), TEXTS_MAX):
        some = worded[start : start + TEXTS_MAX]
        vectors[some] = run([texts[n] for n in some])
    return unit(vectors)


def pooled(
    states: npt.NDArray[Any], mask: npt.NDArray[np.int64], *, takes_first: bool
) -> npt.NDArray[Any]:
    """Return one vector a text.

    Args:
        states: [texts, tokens, dimension]; or [texts, dimension] of a model that pools itself.
        mask: [texts, tokens], 1 where there is a token.
    """
    if states.ndim == 2:
        return states
    if takes_first:
        first: npt.NDArray[Any] = states[:, 0]
        return first
    weights = mask[:, :, None].astype(states.dtype)
    mean: npt.NDArray[Any] = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return mean


def _limit(tokenizer: Any) -> None:
    """Make the tokenizer pad to the longest, and cut what the model can't take."""
    limit = (tokenizer.truncation or {}).get("max_length", TOKENS_MAX)
    tokenizer.enable_truncation(limit)
    padding = tokenizer.padding or {}
    tokenizer.enable_padding(
        pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]")
    )


def _name(folder: Path) -> str:
    """Return a name of the model's bytes: another file under the same path is another space."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("model.onnx*")), folder / "tokenizer.json"):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"onnx-{folder.resolve().name}-{digest.hexdigest()[:12]}"


def _layout(folder: Path) -> Layout:
    pooling = _json(folder / "1_Pooling" / "config.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
    return Layout(
        takes_first=bool(pooling.get("pooling_mode_cls_token")),
        query_prefix=str(prompts.get("query") or ""),
        text_prefix=str(prompts.get("document") or prompts.get("passage") or ""),
    )


def _json(path: Path) -> dict[str, Any]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.is_file() else {}
