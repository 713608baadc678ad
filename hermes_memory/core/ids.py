"""Identities: validated, hashable, with a tested round-trip through their text form."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, unquote

from hermes_memory.errors import InvalidId

MAX_ID_CHARS = 128


def check_id(value: object, field: str) -> str:
    """Return ``value`` if it can serve as an id (API: 1–128 characters, opaque); else raise InvalidId.

    Control characters, lone surrogates, line separators and the path names ``.`` and
    ``..`` are refused. The error never echoes the value.
    """
    if not isinstance(value, str):
        raise InvalidId(field, "must be a string")
    if not 1 <= len(value) <= MAX_ID_CHARS:
        raise InvalidId(field, f"must have 1 to {MAX_ID_CHARS} characters")
    if value in {".", ".."} or value.isspace():
        raise InvalidId(field, "is not usable as an id")
    if any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in value):
        raise InvalidId(field, "holds control characters or lone surrogates")
    return value


def digest(*parts: str, size: int = 12) -> str:
    """A stable hex digest of ``size`` bytes over length-delimited ``parts`` (no two splits collide)."""
    state = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()


@dataclass(frozen=True, slots=True, order=True)
class UserKey:
    """One remembered person inside one namespace: the unit of isolation, consistency and erasure."""

    namespace: str
    user_id: str

    def __post_init__(self) -> None:
        check_id(self.namespace, "namespace")
        check_id(self.user_id, "user")

    def __str__(self) -> str:
        return f"{quote(self.namespace, safe='')}/{quote(self.user_id, safe='')}"

    @classmethod
    def parse(cls, text: str) -> UserKey:
        """The inverse of ``str(key)``."""
        namespace, slash, user_id = text.partition("/")
        if not slash or "/" in user_id:
            raise InvalidId("user key", "must be namespace/user")
        return cls(unquote(namespace), unquote(user_id))

    @property
    def hashed(self) -> str:
        """40 hex digits that stand for the user where names are limited or logged."""
        return digest(self.namespace, self.user_id, size=20)
