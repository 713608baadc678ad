"""The deployment's files, read; and shell-like variables of compose files, filled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
MANIFEST = "deploy/kuberay/rayservice.yaml"
SWITCHES = {"RAY_SERVE_ENABLE_HA_PROXY": "1", "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"}
HERMES_VARIABLE = re.compile(r"\bHERMES_[A-Z_]+\b")


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def document(path: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(text(path))
    return read


def manifests() -> dict[str, dict[str, Any]]:
    """The objects of the manifest by kind."""
    read = list(yaml.safe_load_all(text(MANIFEST)))
    by_kind = {one["kind"]: one for one in read}
    assert len(by_kind) == len(read)
    return by_kind


def with_defaults(value: Any) -> Any:
    """Variables replaced by what a compose file says in their absence."""
    if isinstance(value, dict):
        return {key: with_defaults(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_defaults(inner) for inner in value]
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) if isinstance(value, str) else value


def addresses() -> set[str]:
    """The variables that the cluster's configuration reads."""
    return set(HERMES_VARIABLE.findall(text("configs/cluster.toml")))
