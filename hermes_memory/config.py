"""Configuration: the defaults as data, one file of overrides, validated into typed values.

Loaded by entry points only, never at import.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from hermes_memory.core.rules import (
    BriefingRules,
    CapacityRules,
    CohortRules,
    ConflictRules,
    EntryRules,
    FeedbackRules,
    FusionRules,
    KnowledgeRules,
    LifeRules,
    LockRules,
    NightRules,
    ProfileRules,
    QualityRules,
    RecallRules,
    Rules,
    WindowRules,
)
from hermes_memory.errors import InvalidConfig


class Placement(StrEnum):
    """How user actors are spread over Ray actors (ARCHITECTURE §2)."""

    POOLED = "pooled"
    DEDICATED = "dedicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """Where the system of record is and how hard it writes."""

    kind: Literal["sqlite", "redis"]
    synchronous: Literal["FULL", "NORMAL"]  # this and the next: of "sqlite"
    busy_timeout_s: float
    url: str  # from here on: of "redis"
    password_env: str
    cluster: bool
    sentinels: tuple[str, ...]
    master: str
    prefix: Annotated[str, Field(pattern=r"^[^{}\s]+$")]
    durability: Literal["always", "everysec"]
    on_unsafe: Literal["refuse", "warn"]
    timeout_s: Annotated[float, Field(gt=0)]
    max_connections: Annotated[int, Field(ge=1)]
    attempts: Annotated[int, Field(ge=1, le=10)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Which long-term index, how recall asks it, and how it is fed."""

    kind: str
    always: bool
    url: str
    grpc_port: Annotated[int, Field(ge=1, le=65_535)]
    key_env: str
    collection: str
    read_timeout_s: Annotated[float, Field(gt=0)]
    write_timeout_s: Annotated[float, Field(gt=0)]
    nominations: Annotated[int, Field(ge=1, le=1_000)]
    recall_timeout_s: Annotated[float, Field(gt=0)]
    failures: Annotated[int, Field(ge=1)]
    avoid_s: Annotated[float, Field(gt=0)]
    batch: Annotated[int, Field(ge=1, le=1_000)]
    users_at_once: Annotated[int, Field(ge=1, le=64)]
    linger_s: Annotated[float, Field(ge=0)]
    pause_s: Annotated[float, Field(gt=0)]
    attempts: Annotated[int, Field(ge=1)]
    backoff_s: Annotated[float, Field(gt=0)]
    backoff_max_s: Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """Which embedder; ``calibration`` names a file in ``configs/embedders``, or is the path of another.

    ``num_gpus`` above 0: it stands in a Serve deployment of its own, with so many GPUs a replica.
    """

    kind: str
    calibration: str
    model: str  # this and the next: of the kinds that have not one model only
    dimension: Annotated[int, Field(ge=0)]
    batch: Annotated[int, Field(ge=1, le=2048)]
    max_chars: Annotated[int, Field(ge=1)]
    query_prefix: str
    passage_prefix: str
    timeout_s: Annotated[float, Field(gt=0)]
    attempts: Annotated[int, Field(ge=1, le=10)]
    num_gpus: Annotated[float, Field(ge=0)]  # this and the next three: in a deployment of its own
    replicas: Annotated[int, Field(ge=1)]
    max_replicas: Annotated[int, Field(ge=1)]
    target_ongoing_requests: Annotated[int, Field(ge=1)]
    base_url: str  # from here on: "openai"
    key_env: str
    backoff_s: Annotated[float, Field(ge=0)]
    send_dimension: bool
    path: str  # from here on: "sentence-transformers", and the first of them "vllm" too
    device: str
    query_prompt: str
    passage_prompt: str
    engine: Mapping[str, str | int | float | bool]  # of "vllm"

    @property
    def served(self) -> bool:
        """Whether it is asked over Ray, rather than loaded by each process that embeds."""
        return self.num_gpus > 0


def _host_of(url: str) -> str:
    """Host and port of a URL; empty where it is none."""
    try:
        found = urlsplit(url)
        return (found.hostname or "") + (f":{found.port}" if found.port else "")
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorSettings:
    """Who reads the turns, and what becomes of those that a language model cannot read."""

    kind: Literal["rules", "vllm", "openai"]
    model: str
    prompt: str
    fallback: Literal["rules", "park"]
    timeout_s: Annotated[float, Field(gt=0)]
    max_tokens: Annotated[int, Field(ge=64)]
    delay_s: Annotated[float, Field(ge=0)]
    second_opinion: Annotated[float, Field(ge=0, le=1)]
    tokens_per_day: Annotated[int, Field(ge=0)]
    price_in: Annotated[float, Field(ge=0)]
    price_cached: Annotated[float, Field(ge=0)]
    price_out: Annotated[float, Field(ge=0)]
    base_url: str  # from here on: "openai"
    key_env: str
    attempts: Annotated[int, Field(ge=1, le=10)]
    backoff_s: Annotated[float, Field(ge=0)]
    max_concurrent: Annotated[int, Field(ge=1)]
    answer_form: Literal["schema", "object"]
    num_gpus: Annotated[float, Field(ge=0)]  # from here on: "vllm"
    replicas: Annotated[int, Field(ge=1)]
    max_replicas: Annotated[int, Field(ge=1)]
    target_ongoing_requests: Annotated[int, Field(ge=1)]
    max_ongoing_requests: Annotated[int, Field(ge=1)]
    engine: Mapping[str, str | int | float | bool]

    @property
    def told(self) -> str:
        """Who reads, and what if that fails, in words for people: of a URL the host alone, of a key nothing."""
        if self.kind == "rules":
            return "the rules, zh and en"
        named = self.model or "the recommended model"
        where = f"on {self.num_gpus:g} GPU(s) of this cluster, by vLLM"
        if self.kind == "openai":
            where = f"at {_host_of(self.base_url) or 'an endpoint without a usable base_url'}"
        failing = "the rules read" if self.fallback == "rules" else "turns wait"
        return f"{named} {where}, with the prompt {self.prompt}; where it fails {failing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings:
    """Who takes a second look at the ``candidates`` best hits of a recall, within ``timeout_s``; nobody by default."""

    kind: str
    model: str
    base_url: str
    key_env: str
    timeout_s: Annotated[float, Field(gt=0)]
    candidates: Annotated[int, Field(ge=1, le=50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorSettings:
    """How user actors live (ARCHITECTURE §2)."""

    placement: Placement
    hosts: Annotated[int, Field(ge=1)]
    idle_s: float
    memory_budget_mb: int
    lease_s: float
    housekeeping_s: float
    max_waiting: int
    max_in_flight: Annotated[int, Field(ge=1)]
    call_timeout_s: float
    deadline_s: float
    max_hosts: Annotated[int, Field(ge=1)]
    ping_s: Annotated[float, Field(gt=0)]
    stuck_s: Annotated[float, Field(gt=0)]
    start_s: Annotated[float, Field(gt=0)]
    node_resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """When a user's micro-batch closes, and how a failed extraction is tried again."""

    turns: int
    chars: int
    delay_s: float
    context_turns: int
    known: int
    attempts: int
    backoff_s: float
    parked_retry_s: Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Limits wherever a client decides a number (ARCHITECTURE §7)."""

    max_body_bytes: int
    max_messages: int
    max_content_chars: int
    max_query_chars: int
    default_timezone: str
    default_wait_s: float
    max_wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How Ray Serve runs the app; a deployment scales itself where its most is above its least."""

    host: str
    port: int
    ingress: Literal["proxy", "haproxy"]
    expose: bool  # HAProxy opens ports on all interfaces: only where this says so
    access_log: bool
    max_ingress_replicas: Annotated[int, Field(ge=1)]
    max_distiller_replicas: Annotated[int, Field(ge=1)]
    target_ongoing_requests: Annotated[int, Field(ge=1)]
    replica_cpus: Annotated[float, Field(ge=0)]
    max_ongoing_requests: int
    max_in_flight: Annotated[int, Field(ge=1)]
    ingress_replicas: Annotated[int, Field(ge=1)]
    distiller_replicas: int
    drain_s: Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingSettings:
    """What the server's processes log, and how."""

    format: Literal["text", "json"]
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlySettings:
    """How fast the job over all users goes (SPEC §9); see ``app.night.Pacing``."""

    shards: Literal[1, 2, 4, 8, 16]
    workers: Annotated[int, Field(ge=1)]
    page: Annotated[int, Field(ge=1, le=10_000)]
    in_flight: Annotated[int, Field(ge=1, le=1_024)]
    share: Annotated[float, Field(gt=0, le=1)]
    deadline_s: Annotated[float, Field(gt=0)]
    backoff_s: Annotated[float, Field(gt=0)]
    backoff_most_s: Annotated[float, Field(gt=0)]
    retries: Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration."""

    entry: EntryRules
    capacity: CapacityRules
    life: LifeRules
    locks: LockRules
    conflicts: ConflictRules
    recall: RecallRules
    fusion: FusionRules
    briefing: BriefingRules
    window: WindowRules
    knowledge: KnowledgeRules
    feedback: FeedbackRules
    profile: ProfileRules
    night: NightRules
    quality: QualityRules
    cohorts: CohortRules
    ledger: LedgerSettings
    index: IndexSettings
    embedder: EmbedderSettings
    extractor: ExtractorSettings
    reranker: RerankerSettings
    actors: ActorSettings
    batch: BatchSettings
    api: ApiSettings
    serve: ServeSettings
    logging: LoggingSettings
    nightly: NightlySettings

    @property
    def rules(self) -> Rules:
        """The part that the pure core reads."""
        return Rules(
            entry=self.entry, capacity=self.capacity, life=self.life, locks=self.locks, conflicts=self.conflicts,
            recall=self.recall, fusion=self.fusion, briefing=self.briefing, window=self.window,
            knowledge=self.knowledge, feedback=self.feedback, profile=self.profile, night=self.night,
            quality=self.quality, cohorts=self.cohorts,
        )  # fmt: skip


def load_settings(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Defaults, then ``embedded.toml``, then the file at ``path``, then ``overrides``; later ones win.

    ``path`` is a file or the bare name of a shipped one: ``cluster``, ``cluster-gpu``, ``cluster-gpus``. In its strings ``${NAME}`` stands for an environment
    variable, ``${NAME:-text}`` for it or else the text, ``${NAME:+text}`` for the text if it is set, ``$${`` for
    ``${``. A relative path in a file counts from the file's folder. A
    file may name ``preset = "compact" | "strict" | "eager"`` or a list of them, applied before its own keys.

    Raises:
        InvalidConfig: a file is missing or unreadable, a key is unknown, a value is out of range, or a variable is
            not set.
    """
    defaults = _packaged("defaults.toml")
    presets = defaults.pop("presets")
    document = _merge(defaults, _packaged("embedded.toml"))
    layers = _layers(path) if path is not None else []
    for layer in [*layers, _located(overrides or {}, Path())]:
        chosen = layer.pop("preset", [])
        for name in [chosen] if isinstance(chosen, str) else chosen:
            if name not in presets:
                raise InvalidConfig("preset", f"must be one of {', '.join(sorted(presets))}")
            document = _merge(document, presets[name])
        document = _merge(document, layer)
    return settings_of(document)


def settings_of(document: Mapping[str, Any]) -> Settings:
    """Validate a complete document."""
    _refuse_unknown(document)
    try:
        return TypeAdapter(Settings).validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidConfig(".".join(map(str, first["loc"])), first["msg"]) from None


def document_of(settings: Settings) -> dict[str, Any]:
    """The settings as plain data, to travel to other processes."""
    return dict(TypeAdapter(Settings).dump_python(settings, mode="json"))


def _refuse_unknown(document: Mapping[str, Any]) -> None:
    known = {**_packaged("defaults.toml"), **_packaged("embedded.toml")}
    known.pop("presets", None)
    for section, values in document.items():
        if section not in known:
            raise InvalidConfig(section, "is not a known section")
        if not isinstance(values, Mapping):
            raise InvalidConfig(section, "must be a section")
        for key in values:
            if key not in known[section]:
                raise InvalidConfig(f"{section}.{key}", "is not a known key")


def names_file(named: str) -> bool:
    """Whether a setting is the path of a file rather than the name of a shipped one."""
    return named.endswith(".toml") or "/" in named


FILES = (("embedder", "calibration"), ("extractor", "prompt"))  # settings that may name one


def _located(layer: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The layer with its paths made absolute: other processes have other working directories."""
    located = dict(layer)
    for section, key in FILES:
        values = layer.get(section)
        named = values.get(key) if isinstance(values, Mapping) else None
        if isinstance(named, str) and names_file(named):
            located = _merge(located, {section: {key: str((folder / named).absolute())}})
    return located


# By its name, each shipped configuration as the files that it is made of; later ones win.
SHIPPED = {
    "cluster": ("cluster",),
    "cluster-gpu": ("cluster", "cluster-gpu"),
    "cluster-gpus": ("cluster", "cluster-gpu", "cluster-gpus"),
}
_VARIABLE = re.compile(
    r"\$(?P<plain>\$)?\{(?P<name>[A-Za-z_]\w*)(?::(?P<sign>[-+])(?P<text>[^}]*))?\}", re.ASCII
)


def _layers(path: Path) -> list[dict[str, Any]]:
    """The layer of a file, or those of the shipped configuration of that name."""
    shipped = not path.exists() and SHIPPED.get(str(path))
    read = [_packaged(f"{name}.toml") for name in shipped] if shipped else [_read(path)]
    return [_located(_with_variables(layer, ""), path.parent) for layer in read]


def _with_variables(value: Any, key: str) -> Any:
    """The value with the environment's variables in its strings."""
    if isinstance(value, Mapping):
        return {name: _with_variables(inner, f"{key}.{name}".lstrip(".")) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_variables(inner, key) for inner in value]
    return _VARIABLE.sub(lambda found: _variable(found, key), value) if isinstance(value, str) else value


def _variable(found: re.Match[str], key: str) -> str:
    if found["plain"]:
        return found[0][1:]
    given = os.environ.get(found["name"])
    if found["sign"] == "+":
        return found["text"] if given else ""
    given = given or found["text"]  # empty counts as unset, as in a shell
    if given is None:
        raise InvalidConfig(key, f"the environment variable {found['name']} is not set")
    return given


def _packaged(name: str) -> dict[str, Any]:
    return tomllib.loads(files("configs").joinpath(name).read_text(encoding="utf-8"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(str(path), f"cannot be read: {error}") from None


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged
