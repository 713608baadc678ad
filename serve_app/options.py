"""What Serve is told: the switches it reads when it is imported, its ports, and how a deployment scales. No Ray here."""

from __future__ import annotations

from typing import Any

from hermes_memory.config import ExtractorSettings, ServeSettings, Settings
from hermes_memory.errors import InvalidConfig

HA_PROXY, THROUGHPUT = "RAY_SERVE_ENABLE_HA_PROXY", "RAY_SERVE_THROUGHPUT_OPTIMIZED"
DRAIN_LOOK_S = 0.2  # how often a replica that has to end looks whether it still has something to do
# Of a replica with an engine: how often it is asked, and how long it may take.
HEALTH_S, HEALTH_LIMIT_S = 2.0, 30.0
EMBEDDER_HEALTH_S = 2.0  # a recall waits for it: so long goes by before one that has died is made again
DRAINING = "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S"


def check_exposure(serve: ServeSettings) -> None:
    """Refuse what opens more than the operator has said.

    Raises:
        InvalidConfig: HAProxy without ``serve.expose``.
    """
    if serve.ingress == "haproxy" and not serve.expose:
        raise InvalidConfig(
            "serve.expose",
            'must be true with serve.ingress = "haproxy", which opens ports 8404 and 9101 on all interfaces '
            "whatever serve.host says: close them to the outside first",
        )


def forced_switches(serve: ServeSettings) -> dict[str, str]:
    """Environment variables that say what the configuration says, whatever the environment said before."""
    return {HA_PROXY: "1" if serve.ingress == "haproxy" else "0"}


def default_switches(serve: ServeSettings) -> dict[str, str]:
    """Environment variables for a server on one machine, unless the environment says otherwise.

    The draining period gives load balancers time to forget a replica: here there are none, and a stop would take
    30 s and more.
    """
    return {THROUGHPUT: "1", DRAINING: "0"} if serve.ingress == "haproxy" else {}


def http_options(serve: ServeSettings) -> dict[str, Any]:
    """Where Serve listens."""
    return {"host": serve.host, "port": serve.port}


def logging_config(settings: Settings) -> dict[str, Any]:
    """What Serve logs; the proxies and the replicas must each be told. The paths of an access log name users."""
    return {
        "encoding": {"text": "TEXT", "json": "JSON"}[settings.logging.format],
        "log_level": settings.logging.level,
        "enable_access_log": settings.serve.access_log,
    }


def of_ingress(serve: ServeSettings) -> dict[str, Any]:
    """The options of the deployment that answers HTTP."""
    return _replicas(serve, serve.ingress_replicas, serve.max_ingress_replicas)


def of_distiller(serve: ServeSettings) -> dict[str, Any]:
    """The options of the deployment that extracts and embeds."""
    return _replicas(serve, serve.distiller_replicas, serve.max_distiller_replicas)


def of_embedder(settings: Settings) -> dict[str, Any]:
    """The options of the deployment that embeds on GPU nodes."""
    chosen, serve = settings.embedder, settings.serve
    scale: dict[str, Any] = {"num_replicas": chosen.replicas}
    if chosen.max_replicas > chosen.replicas:
        bounds = {"min_replicas": chosen.replicas, "max_replicas": chosen.max_replicas}
        target = {"target_ongoing_requests": chosen.target_ongoing_requests}
        scale = {"num_replicas": None, "autoscaling_config": bounds | target}
    return scale | {
        "max_ongoing_requests": serve.max_ongoing_requests,
        "max_queued_requests": serve.max_ongoing_requests,  # of each caller; one more is told at once
        "graceful_shutdown_wait_loop_s": DRAIN_LOOK_S,
        "graceful_shutdown_timeout_s": serve.drain_s,
        "health_check_period_s": EMBEDDER_HEALTH_S,
        "ray_actor_options": {"num_cpus": serve.replica_cpus, "num_gpus": chosen.num_gpus},
    }


def of_model(extractor: ExtractorSettings, drain_s: float) -> dict[str, Any]:
    """The options of the deployment of the language model: GPUs, and replicas by what waits in front of them."""
    least, most = extractor.replicas, max(extractor.replicas, extractor.max_replicas)
    scaling = {
        "num_replicas": None,
        "autoscaling_config": {
            "min_replicas": least, "max_replicas": most,
            "target_ongoing_requests": extractor.target_ongoing_requests,
        },
    }  # fmt: skip
    return {
        **(scaling if most > least else {"num_replicas": least}),
        "max_ongoing_requests": extractor.max_ongoing_requests,
        "max_queued_requests": extractor.max_ongoing_requests,  # one more is told to come again
        "graceful_shutdown_wait_loop_s": DRAIN_LOOK_S,
        "graceful_shutdown_timeout_s": max(drain_s, extractor.timeout_s),  # an answer begun is paid for
        "health_check_period_s": HEALTH_S,
        "health_check_timeout_s": HEALTH_LIMIT_S,
        "ray_actor_options": {"num_cpus": 0.0, "num_gpus": extractor.num_gpus},
    }


def _replicas(serve: ServeSettings, least: int, most: int) -> dict[str, Any]:
    """So many, or by load; and what each takes."""
    taking = {"ray_actor_options": {"num_cpus": serve.replica_cpus}}
    if most <= least:
        return {"num_replicas": least, **taking}
    bounds = {"min_replicas": least, "max_replicas": most}
    target = {"target_ongoing_requests": serve.target_ongoing_requests}
    return {"num_replicas": None, "autoscaling_config": bounds | target, **taking}
