"""What is known about an embedder, from and to a TOML file (``configs/embedders/``)."""

from __future__ import annotations

import base64
import binascii
import json
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory.core.calibration import Calibration, Centring, EmbedderProfile, Floats, Ramp
from hermes_memory.core.concern import Concern
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
                concern=_concern(data["concern"]) if "concern" in data else None,
            ),
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(path.name, "cannot be read as TOML") from error
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise InvalidConfig(path.name, f"does not hold together: {type(error).__name__} {error}") from error


def profile_text(profile: EmbedderProfile, source: str) -> str:
    """The file's text; ``source`` is the name of the pairs that it was fitted to."""
    calibration = profile.calibration
    lines = [
        f"# Made by `hermes calibrate` from {source}; knots: [similarity, value].",
        f"model = {json.dumps(profile.model, ensure_ascii=False)}",
        f"dimension = {profile.dimension}",
    ]
    for name, ramp in (("query", calibration.query), ("pair", calibration.pair)):
        lines += ["", f"[{name}]", f"knots = {[list(knot) for knot in ramp.knots]}"]
    centre = calibration.centring
    if centre is not None:
        lines += ["", "[centring]  # arrays are base64 of little-endian float32"]
        lines += [f"mean_share = {centre.mean_share}", f"direction_share = {centre.direction_share}"]
        for name in ("query_mean", "passage_mean", "directions"):
            lines.append(f'{name} = "{pack(getattr(centre, name))}"')
    if calibration.concern is not None:
        lines += ["", "[concern]  # whether a query concerns its user", f"bias = {calibration.concern.bias}"]
        lines.append(f'direction = "{pack(calibration.concern.direction)}"')
    return "\n".join(lines) + "\n"


def write_profile(path: Path, text: str) -> None:
    """Put ``text`` at ``path``, whole or not at all. Raises InvalidConfig when it cannot be written."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as draft:
            draft.write(text)
        try:
            Path(draft.name).chmod(0o644)
            Path(draft.name).replace(path)
        except OSError:
            Path(draft.name).unlink()
            raise
    except OSError as error:
        raise InvalidConfig(str(path), f"cannot be written: {error.strerror}") from None


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


def _concern(table: dict[str, Any]) -> Concern:
    return Concern(_unpack(table["direction"]), float(table["bias"]))


def _unpack(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
