"""Reads what a chat model is asked: ``configs/prompts/rerank.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from hermes_memory.errors import InvalidConfig


@dataclass(frozen=True, slots=True)
class RerankPrompt:
    """The instruction, and what else is sent with each request."""

    system: str
    request: Mapping[str, Any]


def load_prompt(path: Traversable) -> RerankPrompt:
    """The prompt in the file at ``path``. Raises InvalidConfig."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        system, request = data["system"], data.get("request", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise InvalidConfig(path.name, "cannot be read as a prompt") from error
    if not (isinstance(system, str) and system.strip() and isinstance(request, dict)):
        raise InvalidConfig(path.name, "needs a text `system`, and may have a table `request`")
    return RerankPrompt(system.strip(), request)
