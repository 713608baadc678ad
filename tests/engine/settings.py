"""How the engine is configured where the GPU is one that a node only declares: on this machine's CPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.engine.place import running

# The engine reads these where it runs. A gigabyte of cache is room for five questions of full length.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
CONTEXT = 8192


def fast_type() -> str:
    """Without AVX-512 half-precision numbers are emulated, which is slower than whole ones."""
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return "bfloat16" if "avx512f" in flags else "float32"


def arguments() -> dict[str, Any]:
    """Of vLLM's engine."""
    return {"max_model_len": CONTEXT, "enforce_eager": True, "dtype": fast_type()}


def overrides(**extractor: Any) -> dict[str, Any]:
    """Of the configuration: one host, no embedding model, answers short enough for a test."""
    return {
        "embedder": {"kind": "hash", "calibration": "hash"},
        "actors": {"hosts": 1},
        "extractor": {
            "kind": "vllm", "model": str(running().model), "num_gpus": 1.0, "max_tokens": 160, "delay_s": 0.2,
            "timeout_s": 120.0, "engine": arguments(), **extractor,
        },
    }  # fmt: skip


def set_environment() -> None:
    """For engines that this process starts, and Ray's workers after it."""
    os.environ.update(ENVIRONMENT)
