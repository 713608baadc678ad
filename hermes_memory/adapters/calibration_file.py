"""Reads what is known about an embedder from a TOML file (``configs/embedders/``)."""

from __future__ import annotations

import base64
import binascii
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory.core.calibration import Calibration, Centring, EmbedderProfile, Floats, Ramp
from hermes_memory.errors import InvalidConfig


def load_profile(path: Path) -> EmbedderProfile:
    """The profile in the file at ``path``.

    Raises:
        InvalidConfig: The file is missing, is not TOML, or does not hold together.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return EmbedderProfile(
            model=str(data["model"]),
            dimension=int(data["dimension"]),
            calibration=Calibration(
                query=_ramp(data["query"]),
                pair=_ramp(data["pair"]),
                centring=_centring(data["centring"]) if "centring" in data else None,
            ),
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(path.name, "cannot be read as TOML") from error
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise InvalidConfig(path.name, f"does not hold together: {type(error).__name__} {error}") from error


def pack(array: Floats) -> str:
    """An array as the text that the file holds: base64 of little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode("ascii")


def _ramp(table: dict[str, Any]) -> Ramp:
    return Ramp(tuple((float(cosine), float(value)) for cosine, value in table["knots"]))


def _centring(table: dict[str, Any]) -> Centring:
    query_mean, passage_mean = _unpack(table["query_mean"]), _unpack(table["passage_mean"])
    directions = _unpack(table["directions"]).reshape(-1, len(query_mean))
    return Centring(
        query_mean=query_mean,
        passage_mean=passage_mean,
        directions=directions,
        mean_share=float(table["mean_share"]),
        direction_share=float(table["direction_share"]),
    )


def _unpack(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
