"""What Serve is told: the switches it reads when it is imported, its ports, and how a deployment scales. No Ray here."""

from __future__ import annotations

from typing import Any

from hermes_memory.config import ServeSettings
from hermes_memory.errors import InvalidConfig

HA_PROXY, THROUGHPUT = "RAY_SERVE_ENABLE_HA_PROXY", "RAY_SERVE_THROUGHPUT_OPTIMIZED"
DRAINING = "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S"


def check(serve: ServeSettings) -> None:
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


def forced(serve: ServeSettings) -> dict[str, str]:
    """Environment variables that say what the configuration says, whatever the environment said before."""
    return {HA_PROXY: "1" if serve.ingress == "haproxy" else "0"}


def defaults(serve: ServeSettings) -> dict[str, str]:
    """Environment variables for a server on one machine, unless the environment says otherwise.

    The draining period gives load balancers time to forget a replica: here there are none, and a stop would take
    30 s and more.
    """
    return {THROUGHPUT: "1", DRAINING: "0"} if serve.ingress == "haproxy" else {}


def ports(serve: ServeSettings) -> dict[str, Any]:
    """Where Serve listens, for ``serve.start``."""
    return {"http_options": {"host": serve.host, "port": serve.port}}


def logged(serve: ServeSettings) -> dict[str, Any]:
    """What Serve logs of each request, for proxies and replicas."""
    return {"enable_access_log": serve.access_log}


def scale(serve: ServeSettings, least: int, most: int) -> dict[str, Any]:
    """How many replicas a deployment has: so many, or by load."""
    if most <= least:
        return {"num_replicas": least}
    target = serve.target_ongoing_requests
    return {
        "autoscaling_config": {"min_replicas": least, "max_replicas": most, "target_ongoing_requests": target}
    }
