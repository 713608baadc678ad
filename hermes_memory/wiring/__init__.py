"""The one place that chooses implementations. Adapters take plain arguments, never the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory.adapters.anchor_file import load_anchors
from hermes_memory.adapters.answer_file import load_answers
from hermes_memory.adapters.calibration_file import load_profile
from hermes_memory.adapters.clock import SystemClock
from hermes_memory.adapters.cohort_file import load_catalogue
from hermes_memory.adapters.daytime_file import load_daytimes
from hermes_memory.adapters.detectors import SecretDetector
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.embedders.gathering import Closing, GatheringEmbedder
from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.adapters.grounding_file import load_grounding
from hermes_memory.adapters.measured import measured_distiller, measured_index, measured_ledger
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.adapters.pairs_file import load_fit_rules, load_pairs
from hermes_memory.adapters.query_reader import load_query_reader
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.adapters.segmenter import Segmenter, read_common_words, read_stop_words
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.adapters.vllm_model import RECOMMENDED, VllmModel, spoken
from hermes_memory.app.desk import Policy
from hermes_memory.app.distil import LocalDistiller
from hermes_memory.app.indexing import Indexing
from hermes_memory.app.state import Words
from hermes_memory.config import Settings, names_file
from hermes_memory.core.calibration import EmbedderProfile
from hermes_memory.core.fitting import FitRules
from hermes_memory.core.labelled import LabelledPairs
from hermes_memory.core.privacy import mask
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import Embedder, EmbedderInfo
from hermes_memory.ports.extractor import Extractor
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.language_model import LanguageModel, Question
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.counting import Prices
from hermes_memory.runtime.extraction import BatchRules
from hermes_memory.runtime.feeding import FeedRules
from hermes_memory.runtime.filled_index import FilledIndex
from hermes_memory.runtime.host import HostRules, UserHost
from hermes_memory.runtime.long_term import LongTerm, SearchRules
from hermes_memory.runtime.seating import Share
from hermes_memory.runtime.second_look import SecondLook
from hermes_memory.wiring.models import build_reranker, configs, key_of, kind_of_embedder

if TYPE_CHECKING:
    from hermes_memory.adapters.chat_model import ChatModel

DATABASE = "hermes.db"
QUESTIONS = 3  # of an extraction to a language model: itself, its repair, the second opinion
CHAT_BYTES = 4_000_000  # of a chat model's answer: a hundred times what max_tokens of it take


def build_profile(settings: Settings) -> EmbedderProfile:
    """What is known about the configured embedder: dimension and calibration."""
    return load_profile(calibration_file(settings))


def calibration_file(settings: Settings) -> Path:
    """Where the configured calibration is: a shipped one by name, or any by path."""
    named = settings.embedder.calibration
    return Path(named) if names_file(named) else configs("embedders", f"{named}.toml")


def build_fit(pairs: Path | None = None) -> tuple[LabelledPairs, FitRules]:
    """What a calibration is fitted to, the shipped pairs by default, and the rules of the fit."""
    shipped = configs("embedders", "pairs.jsonl")
    return load_pairs(pairs or shipped), load_fit_rules(configs("embedders", "calibrating.toml"))


def build_embedder(settings: Settings) -> Embedder:
    """The embedder for this process, not yet loaded."""
    return kind_of_embedder(settings).build(settings, embedder_info(settings))


def build_shared_embedder(settings: Settings) -> Embedder:
    """The embedder for many callers at once, not yet loaded: what they ask goes to the model together."""
    embedder = build_embedder(settings)
    if kind_of_embedder(settings).gathers:
        return embedder
    return GatheringEmbedder(embedder, batch=settings.embedder.batch)


def build_ledger(settings: Settings, data: Path) -> Ledger:
    """The system of record under the data directory, not yet opened."""
    if settings.ledger.kind == "redis":
        return _redis_ledger(settings)
    return SqliteLedger(
        data / DATABASE,
        synchronous=settings.ledger.synchronous,
        busy_timeout_s=settings.ledger.busy_timeout_s,
        outbox=settings.index.kind != "none",  # nobody would read it
    )


def build_index(settings: Settings, ledger: Ledger) -> VectorIndex | None:
    """The long-term index, not yet opened; None where a user's own actor searches everything.

    Raises:
        InvalidConfig: there is no such kind, or a setting does not fit it.
    """
    chosen = settings.index
    if chosen.kind == "none":
        return None
    if chosen.kind == "exact":
        return FilledIndex(ExactIndex(embedder_info(settings).dimension), ledger, _words(), chosen.batch)
    if chosen.kind != "weaviate":
        raise InvalidConfig("index.kind", "must be one of none, exact, weaviate")
    from hermes_memory.adapters.weaviate_index import WeaviateIndex

    return WeaviateIndex(
        chosen.url, embedder_info(settings), grpc_port=chosen.grpc_port, api_key=key_of(chosen.key_env, "index"),
        collection=chosen.collection, read_timeout_s=chosen.read_timeout_s, write_timeout_s=chosen.write_timeout_s,
    )  # fmt: skip


def build_long_term(settings: Settings, ledger: Ledger, metrics: Metrics) -> LongTerm | None:
    """The long-term index with the bounds of a recall, its calls counted; None without one."""
    chosen, index = settings.index, build_index(settings, ledger)
    if index is None:
        return None
    rules = SearchRules(
        nominations=chosen.nominations, timeout_s=chosen.recall_timeout_s, failures=chosen.failures,
        pause_s=chosen.avoid_s, always=chosen.always,
    )  # fmt: skip
    return LongTerm(measured_index(index, metrics), rules)


def build_indexing(settings: Settings, ledger: Ledger, index: VectorIndex) -> Indexing:
    """What brings the index to say what the ledger says."""
    return Indexing(ledger, index, _words(), settings.index.batch)


def _words() -> Words:
    return Segmenter(read_stop_words(configs("words"))).words


def feed_rules(settings: Settings) -> FeedRules:
    """How the index is fed."""
    chosen = settings.index
    return FeedRules(
        batch=chosen.batch, together=chosen.users_at_once, linger_s=chosen.linger_s, pause_s=chosen.pause_s,
        attempts=chosen.attempts, backoff_s=chosen.backoff_s, backoff_max_s=chosen.backoff_max_s,
    )  # fmt: skip


def _redis_ledger(settings: Settings) -> Ledger:
    try:
        from hermes_memory.adapters.redis_ledger import Redis, RedisLedger
    except ModuleNotFoundError as error:
        raise InvalidConfig("ledger.kind", "redis needs the extra hermes-memory[redis]") from error
    chosen = settings.ledger
    return RedisLedger(
        Redis(
            url=chosen.url,
            password=key_of(chosen.password_env, "ledger", "password_env"),
            cluster=chosen.cluster,
            sentinels=chosen.sentinels,
            master=chosen.master,
            timeout_s=chosen.timeout_s,
            max_connections=chosen.max_connections,
            attempts=chosen.attempts,
        ),
        prefix=chosen.prefix,
        durability=chosen.durability,
        on_unsafe=chosen.on_unsafe,
        turns_hours=settings.life.turns_hours,
        operations_hours=settings.life.operations_hours,
        outbox=settings.index.kind != "none",
    )


def has_data(settings: Settings, data: Path) -> bool:
    """Whether anything may have been stored there: of a ledger that is no file under ``data`` only it can tell."""
    return settings.ledger.kind != "sqlite" or (data / DATABASE).exists()


def check_data(settings: Settings, data: Path) -> None:
    """Fail as a host would that starts on the data: in a moment, and before anything is started.

    Raises:
        InvalidConfig: the configuration does not hold together, or the calibration is another embedder's.
        EmbedderMismatch: the data was embedded with another model.
    """
    embedder = build_embedder(settings)
    check_calibration(settings, embedder.info)
    if settings.extractor.kind != "rules":  # its key, its URL, its prompt
        build_extractor(settings, build_vllm_model(settings) if settings.extractor.kind == "vllm" else None)
    asyncio.run(_open_once(build_ledger(settings, data), embedder))


async def _open_once(ledger: Ledger, embedder: Embedder) -> None:
    try:
        await ledger.open(embedder.info)
    finally:
        await ledger.close()
        await let_go(embedder)


def build_policy(settings: Settings) -> Policy:
    """Rules, dimensions, calibration, words and the privacy gate."""
    segmenter = Segmenter(read_stop_words(configs("words")))
    detector = SecretDetector()
    return Policy(
        rules=settings.rules,
        dimensions=load_dimensions(configs("dimensions.toml")),
        calibration=build_profile(settings).calibration,
        words=segmenter.words,
        grounding=load_grounding(configs("words", "grounding.toml")),
        common=read_common_words(configs("words"), segmenter.words),
        anchors=load_anchors(configs("words", "anchors.toml")),
        mask=lambda text: mask(text, detector.find(text)),
        answers=load_answers(configs("words") / "answers.toml"),
        read=load_query_reader(configs("words", "asking.toml")).read,
        daytimes=load_daytimes(configs("words", "daytime.toml")),
        cohort_values=load_catalogue(configs("words", "cohorts.toml")),
    )


def build_distiller(settings: Settings, embedder: Embedder, model: LanguageModel | None = None) -> Distiller:
    """Extraction and embedding in this process. ``model``: who is asked in place of the configured language model.

    Raises:
        InvalidConfig: the extractor's kind needs a model that only the server can give, or a setting does not fit it.
    """
    most = settings.rules.entry.most_candidates
    return LocalDistiller(build_extractor(settings, model), embedder, most)


def distil_timeout_s(settings: Settings) -> float:
    """How long an extraction may take: every question to a language model, each as often as it is tried, and embedding."""
    chosen, embed_s = settings.extractor, settings.actors.deadline_s
    if chosen.kind == "rules":
        return embed_s
    from hermes_memory.adapters.openai_endpoint import MAX_PAUSE_S

    tries = chosen.attempts if chosen.kind == "openai" else 1
    # For room among the calls at once, for the tries, and for the pauses between them.
    question_s = chosen.timeout_s * (1 + tries) + MAX_PAUSE_S * (tries - 1)
    return QUESTIONS * question_s + embed_s


def build_extractor(settings: Settings, model: LanguageModel | None = None) -> Extractor:
    """Who reads the turns: the rules, or a language model with the rules under it. Raises as ``build_distiller``."""
    chosen = settings.extractor
    if chosen.kind == "rules":
        return load_rule_extractor()
    if chosen.kind == "vllm" and model is None:
        raise InvalidConfig(
            "extractor.kind",
            "vllm runs on the cluster: use `hermes serve`, or point the kind openai at a vLLM server of your own",
        )
    from hermes_memory.adapters.model_extractor import build_model_extractor

    return build_model_extractor(
        model or build_language_model(settings), load_dimensions(configs("dimensions.toml")),
        prompt=_prompt_file(settings), floor=configs("extraction", "floor.toml"),
        grounding=load_grounding(configs("words", "grounding.toml")), fallback=chosen.fallback,
        second_opinion=chosen.second_opinion, max_tokens=chosen.max_tokens,
    )  # fmt: skip


def _prompt_file(settings: Settings) -> Path:
    named = settings.extractor.prompt
    return Path(named) if names_file(named) else configs("prompts", f"{named}.toml")


def build_language_model(settings: Settings) -> ChatModel:
    """The language model that reads turns, not yet asked.

    Raises:
        InvalidConfig: the extractor is of a kind without one, or a setting does not fit it.
    """
    chosen = settings.extractor
    if chosen.kind != "openai":
        raise InvalidConfig("extractor.kind", f"{chosen.kind} asks no endpoint")
    if not chosen.model:
        raise InvalidConfig("extractor.model", "must be named for the kind openai")
    from hermes_memory.adapters.chat_model import ChatModel
    from hermes_memory.adapters.openai_endpoint import Endpoint

    endpoint = Endpoint(
        chosen.base_url, key=key_of(chosen.key_env, "extractor"), what="the extractor's model", section="extractor",
        timeout_s=chosen.timeout_s, attempts=chosen.attempts, backoff_s=chosen.backoff_s,
        max_concurrent=chosen.max_concurrent, max_bytes=CHAT_BYTES,
    )  # fmt: skip
    return ChatModel(endpoint, chosen.model, answer_form=chosen.answer_form)


def model_name(settings: Settings) -> str:
    """How the model of the kind "vllm" is called: the configured one, else the one that is recommended."""
    return spoken(settings.extractor.model or RECOMMENDED)


def build_vllm_model(settings: Settings, stat_loggers: Sequence[Any] = ()) -> VllmModel:
    """The engine of the kind "vllm", not yet started; for whoever has the GPU.

    Raises:
        InvalidConfig: the model's folder is none that every process finds.
    """
    chosen = settings.extractor
    if chosen.model.startswith((".", "~")):
        raise InvalidConfig(
            "extractor.model",
            "must be absolute where it is a folder: replicas have other working directories",
        )
    return VllmModel(
        chosen.model or RECOMMENDED,
        timeout_s=chosen.timeout_s,
        arguments=chosen.engine,
        stat_loggers=stat_loggers,
    )


def warm_up_questions(settings: Settings) -> Sequence[Question]:
    """One for each static prompt that users' questions begin with, about nobody."""
    from hermes_memory.adapters.model_extractor.building import warming_questions

    return warming_questions(_prompt_file(settings), load_dimensions(configs("dimensions.toml")))


# embedders and rerankers


def embedder_info(settings: Settings) -> EmbedderInfo:
    """The configured model and its dimension, without building it.

    Raises:
        InvalidConfig: there is no such kind, or a setting does not fit it.
    """
    chosen, built_in = settings.embedder, kind_of_embedder(settings).built_in
    if built_in is not None:
        info = EmbedderInfo(chosen.model or built_in.name, chosen.dimension or built_in.dimension)
        if info != built_in:
            raise InvalidConfig("embedder.model", f"of the kind {chosen.kind} is {built_in}, not {info}")
        return info
    if not chosen.model:
        raise InvalidConfig("embedder.model", f"must be named for the kind {chosen.kind}")
    if not chosen.dimension:
        raise InvalidConfig("embedder.dimension", f"must be given for the kind {chosen.kind}")
    return EmbedderInfo(chosen.model, chosen.dimension)


async def let_go(embedder: Embedder, distiller: Distiller | None = None) -> None:
    """End the threads and connections of what is needed no more."""
    if isinstance(embedder, Closing):
        await embedder.aclose()
    if isinstance(distiller, LocalDistiller):
        await distiller.aclose()


def build_second_look(settings: Settings) -> SecondLook | None:
    """The reranker with its bounds, not yet loaded; None by default."""
    chosen = settings.reranker
    if chosen.kind == "none":
        return None
    return SecondLook(
        reranker=build_reranker(settings), candidates=chosen.candidates, timeout_s=chosen.timeout_s
    )


# hosts


def host_rules(settings: Settings) -> HostRules:
    """How a host lives."""
    actors, batch, reader = settings.actors, settings.batch, settings.extractor
    return HostRules(
        idle_s=actors.idle_s,
        memory_budget_bytes=actors.memory_budget_mb * 1_000_000,
        lease_s=actors.lease_s,
        housekeeping_s=actors.housekeeping_s,
        max_waiting=actors.max_waiting,
        max_in_flight=actors.max_in_flight,
        batch=BatchRules(
            turns=batch.turns,
            chars=batch.chars,
            delay_s=batch.delay_s if reader.kind == "rules" else reader.delay_s,
            context_turns=batch.context_turns,
            known=batch.known,
            attempts=batch.attempts,
            backoff_s=batch.backoff_s,
            parked_retry_s=batch.parked_retry_s,
            tokens_per_day=reader.tokens_per_day,
            prices=Prices(reader.price_in, reader.price_cached, reader.price_out),
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
    share: Share | None = None,
) -> UserHost:
    """A host over the configured ledger, not yet started.

    Raises:
        InvalidConfig: the configuration does not hold together, or the calibration is another embedder's.
    """
    check_calibration(settings, embedder)
    counted = metrics or PrometheusMetrics()
    ledger = measured_ledger(build_ledger(settings, data), counted)
    return UserHost(
        name,
        ledger,
        measured_distiller(distiller, counted),
        embedder,
        build_policy(settings),
        host_rules(settings),
        SystemClock(),
        counted,
        share,
        build_second_look(settings),
        build_long_term(settings, ledger, counted),
        feed_rules(settings),
    )


def check_calibration(settings: Settings, embedder: EmbedderInfo) -> None:
    """Raises InvalidConfig if the configured calibration is another embedder's."""
    profile = build_profile(settings)
    of = EmbedderInfo(profile.model, profile.dimension)
    if of != embedder:
        raise InvalidConfig(
            "embedder.calibration",
            f"is of {of}, the embedder is {embedder}; make one with `hermes calibrate`",
        )
