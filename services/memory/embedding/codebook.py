"""WordLlama's codebook: a vector for each token of the LLaMA 2 vocabulary, and the tokenizer.

Its two files come inside Vigil's wheel, or are taken out of WordLlama's by `make up`, so there is
nothing to download. WordLlama itself isn't needed: its package imports an HTTP client to download
with, sets up logging for the whole process, and pads every text of a batch to the longest (a
gigabyte, if one has 16 kB). The vectors are the same; a test compares them.
"""

from __future__ import annotations

import functools
import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from vigil import distribution
from vigil.errors import ConfigError

from ..numeric import np, npt
from .pieces import SPACE, Pieces

DIMENSION: Final = 256
TOKENS: Final = 32_000
_WEIGHTS: Final = "l2_supercat_256.safetensors"
_TOKENIZER: Final = "l2_supercat_tokenizer_config.json"


class NotInstalled(ConfigError):
    """The package that holds the weights isn't here; everything else works without."""


class _Vocabulary(msgspec.Struct):
    vocab: Mapping[str, int]
    merges: Sequence[str]


class _Mark(msgspec.Struct):
    content: str


class _Tokenizer(msgspec.Struct):
    """What is read of the tokenizer's file."""

    model: _Vocabulary
    added_tokens: Sequence[_Mark]


class _Tensor(msgspec.Struct):
    dtype: str
    shape: tuple[int, int]
    data_offsets: tuple[int, int]


class Codebook:
    """32,000 tokens.

    Args:
        pieces: None: no text has a token (see :func:`empty`).
        weights: float16[tokens, 256], as in the file, half of what they would be to reckon with;
            not of unit norm: the longer a token's vector, the more it counts in a mean.
    """

    def __init__(self, pieces: Pieces | None, weights: npt.NDArray[np.float16]) -> None:
        self.pieces = pieces
        self.weights = weights

    def mean(self, ids: list[int]) -> npt.NDArray[np.float32]:
        """Return the mean of tokens' vectors; at least one."""
        found: npt.NDArray[np.float32] = self.weights[ids].astype(np.float32).mean(axis=0)
        return found

    def give_back(self) -> None:
        """Have the system take back what was read of the file: it's there when it is wanted."""
        held: Any = self.weights
        while held is not None and not isinstance(held, mmap.mmap):
            held = getattr(held, "base", None)
        if held is not None and hasattr(mmap, "MADV_DONTNEED"):
            held.madvise(mmap.MADV_DONTNEED)

    def tokens(self, text: str) -> list[int]:
        """Return the token ids of a text, in its order."""
        return [] if self.pieces is None else self.pieces.tokens(_clean(text))


@functools.cache
def load() -> Codebook:
    """Return the codebook; 0.1 s the first time in a process.

    The weights are a view of the file, so that processes share what they have of it in memory.

    Raises:
        NotInstalled: the files aren't there.
        ConfigError: they are, and can't be read.
    """
    files = _installed()
    try:
        weights = _tensor(files[_WEIGHTS], "embedding.weight")
        tokenizer = msgspec.json.decode(files[_TOKENIZER].read_bytes(), type=_Tokenizer)
    except (OSError, KeyError, ValueError) as error:
        raise ConfigError(f"the installed WordLlama lacks its model: {error}") from error
    pairs = (merge.partition(" ")[::2] for merge in tokenizer.model.merges)
    runs = [(one, other) for one, other in pairs if not f"{one}{other}".strip(SPACE)]
    marks = [mark.content for mark in tokenizer.added_tokens]
    return Codebook(Pieces(tokenizer.model.vocab, runs, marks), weights)


def check_installed() -> None:
    """Look whether there are files, and read none of them. Raises: NotInstalled."""
    _installed()


def _installed() -> Mapping[str, Path]:
    files = distribution.weights()
    if files is None:
        raise NotInstalled(f"WordLlama isn't installed: {distribution.weights_command()}")
    return files


def _tensor(file: Path, name: str) -> npt.NDArray[np.float16]:
    """Return a matrix of a file in the form of safetensors: a head's length, the head, the data."""
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        head = msgspec.json.decode(opened.read(size), type=dict[str, msgspec.Raw])
    tensor = msgspec.json.decode(head[name], type=_Tensor)
    if tensor.dtype != "F16":
        raise ValueError(f"{file.name} holds {tensor.dtype}, not F16")
    begin = 8 + size + tensor.data_offsets[0]
    return np.asarray(np.memmap(file, np.float16, "r", begin, tensor.shape))


@functools.cache
def empty() -> Codebook:
    """Return the codebook of a machine without WordLlama.

    It has as many tokens, since some may be stored with memories that were saved with WordLlama.
    """
    return Codebook(None, np.zeros((TOKENS, DIMENSION), np.float16))


def _clean(text: str) -> str:
    """Return a text that the tokenizer takes: a lone surrogate is not Unicode."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
