"""Which model makes vectors of texts, by the settings."""

from __future__ import annotations

from typing import Final

from vigil.errors import ConfigError
from vigil.runtime import Context
from vigil.settings.config import Settings
from vigil.settings.memory import MemorySection

from . import Embedder

WEIGHT_OF_TOKENS: Final = 0.15
"""What similarity counts for if a vector is the mean of its tokens' (docs/measured.md, "What each
part of recall gives")."""
WEIGHT_OF_SENTENCES: Final = 0.4
"""If a model read the whole text. Measured with MiniLM-L6 (same place): with more, more is found,
but a number or name that one memory alone has doesn't always come first."""


def choose(settings: Settings) -> Embedder:
    """Return the embedder; an ONNX model is loaded (0.3 s and more).

    The default one may be missing, as on a Python that WordLlama has no wheel for: then it's one
    that has no vectors and says why. What somebody has set up must be there.

    Raises:
        ConfigError: what it needs isn't there, or isn't set.
    """
    memory = settings.config.memory
    match memory.embedder:
        case "wordllama":
            from .absent import MissingEmbedder
            from .codebook import NotInstalled
            from .wordllama import WordLlamaEmbedder

            try:
                return WordLlamaEmbedder()
            except NotInstalled as error:
                return MissingEmbedder(str(error))
        case "onnx":
            from .onnx import load

            return load(_set("embedder_model", memory.embedder_model))
        case "openai":
            from .openai import OpenAIEmbedder

            return OpenAIEmbedder(
                _set("embedder_url", memory.embedder_url),
                _set("embedder_model", memory.embedder_model),
                settings.embedder_api_key,
            )


def weight(memory: MemorySection) -> float:
    """Return what similarity counts for in a memory's score (`recall.scores.Weights`)."""
    if memory.weight_vector is not None:
        return memory.weight_vector
    return WEIGHT_OF_TOKENS if memory.embedder == "wordllama" else WEIGHT_OF_SENTENCES


def guarded(context: Context, embedder: Embedder) -> Embedder:
    """Return an embedder behind a circuit, if it is asked over a network."""
    kind = context.settings.config.memory.embedder
    if kind != "openai":
        return embedder
    from .guard import GuardedEmbedder

    return GuardedEmbedder(embedder, context, kind)


def _set(name: str, value: str) -> str:
    if not value:
        raise ConfigError(f"memory.{name} must be set for this memory.embedder")
    return value
