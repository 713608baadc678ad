"""Who reads the turns: whether the configured language model answers, or what it lacks to be loaded."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from dataclasses import replace
from pathlib import Path

from hermes_cli.doctor.findings import Finding, Level
from hermes_cli.doctor.installed import version_of
from hermes_memory.config import ExtractorSettings, Settings
from hermes_memory.errors import HermesError, InvalidConfig

PART = "extractor"
PATIENCE_S = 3.0  # for the endpoint's list of models


def told(settings: Settings) -> list[str]:
    """The same in lines, for who starts a server."""
    found = look_at_extractor(settings)
    return [f"turns are read by {settings.extractor.told}", *(f"{one.name}: {one.detail}" for one in found)]


def look_at_extractor(settings: Settings) -> list[Finding]:
    """What the kind needs; the rules need nothing."""
    chosen = settings.extractor
    if chosen.kind == "openai":
        return [*_prompt(settings), _key(chosen), asyncio.run(_endpoint(settings))]
    if chosen.kind == "vllm":
        return [*_prompt(settings), _engine(chosen), _gpus(chosen), _model(settings)]
    return []


def _prompt(settings: Settings) -> list[Finding]:
    """What is wrong with the prompt's file, if anything is."""
    from hermes_memory.wiring import warm_up_questions

    try:
        warm_up_questions(settings)
    except InvalidConfig as error:
        return [Finding(PART, "prompt", Level.PROBLEM, error.detail)]
    return []


# an endpoint


def _key(chosen: ExtractorSettings) -> Finding:
    if not chosen.key_env:
        return Finding(PART, "key", Level.OK, "none is sent: extractor.key_env is empty")
    there = bool(os.environ.get(chosen.key_env, "").strip())
    detail = f"in {chosen.key_env}" if there else f"the environment variable {chosen.key_env} is not set"
    return Finding(PART, "key", Level.OK if there else Level.PROBLEM, detail)


async def _endpoint(settings: Settings) -> Finding:
    """Ask once for the endpoint's list of models."""
    from hermes_memory.wiring import build_language_model

    chosen = settings.extractor
    hasty = replace(chosen, timeout_s=min(chosen.timeout_s, PATIENCE_S), attempts=1)
    began = time.perf_counter()
    try:
        model = build_language_model(replace(settings, extractor=hasty))
        try:
            listed = await model.listed()
        finally:
            await model.aclose()
    except InvalidConfig as error:
        # Who refuses a key or has no list has answered.
        level = Level.NOTE if error.field == "extractor" else Level.PROBLEM
        return Finding(PART, "endpoint", level, error.detail)
    except HermesError as error:
        return Finding(PART, "endpoint", Level.PROBLEM, f"{chosen.base_url}: {error.detail}")
    took_ms = (time.perf_counter() - began) * 1000
    detail = f"{chosen.base_url} answers in {took_ms:.0f} ms and "
    if listed:
        return Finding(PART, "endpoint", Level.OK, f"{detail}lists {chosen.model}")
    return Finding(PART, "endpoint", Level.NOTE, f"{detail}does not list {chosen.model}")


# vLLM on this cluster


def _lacking(chosen: ExtractorSettings) -> Level:
    """Without a model the rules go on reading, where they may."""
    return Level.NOTE if chosen.fallback == "rules" else Level.PROBLEM


def _engine(chosen: ExtractorSettings) -> Finding:
    version = version_of("vllm")
    if version:
        return Finding(PART, "engine", Level.OK, f"vllm {version}")
    detail = "vllm is not installed here; the nodes that carry the model need it: pip install 'hermes-memory[vllm]'"
    return Finding(PART, "engine", _lacking(chosen), detail)


def _gpus(chosen: ExtractorSettings) -> Finding:
    address = os.environ.get("RAY_ADDRESS", "")
    try:
        there = cluster_gpus(address) if address else gpus_here()
    except Exception as error:  # noqa: BLE001  # Ray raises bare exceptions
        return Finding(
            PART, "gpus", Level.PROBLEM, f"the cluster at RAY_ADDRESS does not answer: {type(error).__name__}"
        )
    whose = "a node of the cluster" if address else "this machine"
    wants = f"extractor.num_gpus is {chosen.num_gpus:g}, for each of {chosen.replicas} replica(s)"
    level = Level.OK if there >= chosen.num_gpus else _lacking(chosen)
    return Finding(PART, "gpus", level, f"{whose} has {there:g}; {wants}")


def gpus_here() -> float:
    """The NVIDIA GPUs of this machine that this process may use."""
    there = len(list(Path("/dev").glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return there
    return min(there, len([name for name in visible.split(",") if name.strip() not in {"", "-1"}]))


def cluster_gpus(address: str) -> float:
    """The GPUs of that node of a running cluster which has most of them. Raises as Ray does."""
    import ray

    ray.init(address, namespace="hermes", log_to_driver=False, logging_level=logging.ERROR)
    try:
        nodes = ray.nodes()  # type: ignore[no-untyped-call]
        return max((node["Resources"].get("GPU", 0.0) for node in nodes if node["Alive"]), default=0.0)
    finally:
        ray.shutdown()


def _model(settings: Settings) -> Finding:
    from hermes_memory.adapters.vllm_model import RECOMMENDED
    from hermes_memory.wiring import build_vllm_model

    chosen = settings.extractor
    try:
        build_vllm_model(settings)
    except InvalidConfig as error:
        return Finding(PART, "model", Level.PROBLEM, error.detail)
    named = chosen.model or RECOMMENDED
    if not named.startswith("/"):
        return Finding(PART, "model", Level.OK, f"{named}, by its name: whoever loads it first may fetch it")
    folder = Path(named)
    if (folder / "config.json").is_file():
        return Finding(PART, "model", Level.OK, f"in {folder}")
    return Finding(PART, "model", _lacking(chosen), f"there is no model in {folder} on this machine")
