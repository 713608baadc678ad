"""Tiny random models of sentence-transformers, made here and saved in a folder: nothing is downloaded."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

HAS_SENTENCE_TRANSFORMERS = importlib.util.find_spec("sentence_transformers") is not None
WHY_NOT = "sentence-transformers is an extra and not installed: pip install 'hermes-memory[st]'"
DIMENSION = 32
PROMPTS = {"query": "find: ", "document": ""}
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def _config(folder: Path, **more: Any) -> Any:
    """A BERT of two small layers over bytes-as-letters, with its tokenizer saved in ``folder``."""
    from transformers import BertConfig, BertTokenizerFast

    letters = [chr(code) for code in range(33, 127)] + list("我对花生过敏晚饭吃什么ทะเล")
    vocabulary = [*_SPECIAL, *dict.fromkeys([*letters, *(f"##{letter}" for letter in letters)])]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    tokenizer.save_pretrained(folder)
    return BertConfig(
        vocab_size=len(vocabulary), hidden_size=DIMENSION, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128, **more,
    )  # fmt: skip


def _layers() -> Any:
    """Where the library keeps its layers, which has changed from 5 to 6."""
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.modules")
    except ModuleNotFoundError:
        return importlib.import_module("sentence_transformers.models")


def save_sentence_model(folder: Path) -> Path:
    """A model whose vectors have ``DIMENSION`` numbers and are not of unit length, with the prompts above."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertModel

    torch.manual_seed(7)
    config = _config(folder / "bert")
    BertModel(config).save_pretrained(folder / "bert")
    kinds = _layers()
    layers = [kinds.Transformer(str(folder / "bert"), max_seq_length=128), kinds.Pooling(DIMENSION)]
    SentenceTransformer(modules=layers, prompts=PROMPTS, device="cpu").save(str(folder / "model"))
    return folder / "model"


def save_cross_encoder(folder: Path, labels: int = 1) -> Path:
    """A classifier of pairs that is published, as many are, without a logistic function: its scores are logits."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(7)
    config = _config(folder, num_labels=labels)
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.mul_(200.0)  # logits far from 0
    model.save_pretrained(folder)
    path = folder / "config.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["sentence_transformers"] = {
        "activation_fn": "torch.nn.modules.linear.Identity",
        "version": "5.0.0",
    }
    path.write_text(json.dumps(settings), encoding="utf-8")
    return folder
