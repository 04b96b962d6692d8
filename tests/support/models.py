"""Sentence models in ONNX, so small that a test can say what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ("[PAD]", "[UNK]", "[CLS]", "the", "cat", "sat", "dog", "query:", "text:")
DIMENSION = 4


def table(seed: int = 1) -> np.ndarray:
    """The vector of each word."""
    return np.random.default_rng(seed).standard_normal((len(WORDS), DIMENSION)).astype(np.float32)


def write_model(
    folder: Path,
    *,
    seed: int = 1,
    pools: bool = False,
    takes_types: bool = False,
    prompts: dict[str, str] | None = None,
    takes_first: bool = False,
) -> Path:
    """Write a model whose tokens have the vectors of `table`, and its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(_model(seed, pools=pools, takes_types=takes_types), folder / "model.onnx")
    _tokenizer().save(str(folder / "tokenizer.json"))
    if prompts is not None:
        told = json.dumps({"prompts": prompts})
        (folder / "config_sentence_transformers.json").write_text(told)
    if takes_first:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    return folder


def _model(seed: int, *, pools: bool, takes_types: bool) -> onnx.ModelProto:
    def ids(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])

    inputs = [ids("input_ids"), ids("attention_mask")]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    out, shape = "states", ["texts", "tokens", DIMENSION]
    constants = [numpy_helper.from_array(table(seed), "table")]
    if takes_types:
        inputs.append(ids("token_type_ids"))
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["types", "last"], ["column"]),
            helper.make_node("Add", ["states", "column"], ["typed"]),
        ]
        constants.append(numpy_helper.from_array(np.array([-1], np.int64), "last"))
        out = "typed"
    if pools:
        nodes.append(helper.make_node("ReduceMax", [out, "tokens_axis"], ["pooled"], keepdims=0))
        constants.append(numpy_helper.from_array(np.array([1], np.int64), "tokens_axis"))
        out, shape = "pooled", ["texts", DIMENSION]
    outputs = [helper.make_tensor_value_info(out, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def _tokenizer() -> Tokenizer:
    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 2)]
    )
    return tokenizer
