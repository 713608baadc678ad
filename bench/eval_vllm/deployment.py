"""A Ray of our own with nothing on it but the model's application."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.report import ROOT
from bench.stack import Say
from hermes_memory.config import Settings

OBJECT_STORE_BYTES = 200_000_000
CORES = 2
# Of a machine without a GPU and without a network: the weights lie in a folder.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_AUTH_MODE": "token",
}


@contextmanager
def deployed(settings: Settings, say: Say) -> Iterator[float]:
    """The model's deployment, ready; gives the seconds that took. Ends it and Ray."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("PYTHONPATH", str(ROOT))  # the engine's environment holds no copy of the project

    import ray
    from ray import serve

    from actors.model import APP
    from serve_app.model_deployment import bind
    from serve_app.options import logging_config

    began = time.monotonic()
    say("starting Ray and the engine")
    logs: dict[str, Any] = logging_config(settings)
    ray.init(
        address="local", namespace="hermes", num_cpus=CORES, include_dashboard=False, log_to_driver=False,
        object_store_memory=OBJECT_STORE_BYTES, logging_level=logging.ERROR,
    )  # fmt: skip
    try:
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        serve.start(http_options={"location": "NoServer"}, logging_config=logs)
        serve.run(bind(settings), name=APP, route_prefix=None, logging_config=logs)
        yield time.monotonic() - began
    finally:
        serve.shutdown()  # type: ignore[no-untyped-call]
        ray.shutdown()
