"""An opened store: the link, the names of its keys, and the model that its vectors are of."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_memory.adapters.redis_ledger.connection import Link
from hermes_memory.adapters.redis_ledger.layout import FORMAT, Layout
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import EmbedderMismatch, InvalidConfig
from hermes_memory.ports.embedder import EmbedderInfo

_MARGIN_H = (
    1.0  # the clocks of the hosts and of the server may differ; what goes by itself never goes too early
)
_HOUR_MS = 3_600_000
_MOVED = b"model"
_REFRESHES = 3


@dataclass(slots=True)
class Store:
    """What every part of the adapter works with. ``model`` numbers the model whose the data is."""

    link: Link
    layout: Layout
    embedder: EmbedderInfo
    feeds_index: bool
    ttls_ms: tuple[int, int]  # operations, turns
    model: int = 1
    stored: EmbedderInfo = field(default_factory=lambda: EmbedderInfo("", 0))
    coming: EmbedderInfo | None = None

    def keys(self, tag: str, *, meta: bool = False) -> list[str]:
        """All keys of a user; with ``meta`` the facts of the store too, where a script may see both."""
        facts = [self.layout.meta("facts")] if meta and not self.link.cluster else []
        return [*self.layout.user(tag, self.model), *facts]

    def identity(self) -> tuple[str, int, int]:
        """What a script compares with the facts: this handle's model."""
        return self.embedder.name, self.embedder.dimension, self.model

    async def of_user(self, name: str, key: UserKey, *values: Any, again: bool = True) -> Any:
        """The reply of a script that needs the user's keys only."""
        return await self.link.script(name, self.keys(self.layout.tag(key)), values, again=again)

    async def as_owner(self, call: Callable[[], Any], *, vectors: bool = False) -> Any:
        """The reply of a script that is the model's business; raises EmbedderMismatch unless it is ours.

        In a Cluster the facts are out of such a script's reach and are read just before it. ``vectors``: it writes
        or removes some, which whoever changes the model must learn.
        """
        for _ in range(_REFRESHES):
            if self.link.cluster:
                await self.refresh()
                self.check()
                if vectors and self.coming is not None:
                    await self.link.command("HINCRBY", self.layout.meta("facts"), "old_writes", 1)
            reply = await call()
            if reply[0] != _MOVED:
                return reply
            await self.refresh()
            self.check()
        raise EmbedderMismatch(str(self.stored), str(self.embedder), False)

    def check(self) -> None:
        """Raises EmbedderMismatch unless the data is of this handle's model, as far as was read last."""
        if self.stored != self.embedder:
            raise EmbedderMismatch(str(self.stored), str(self.embedder), self.coming == self.embedder)

    async def refresh(self) -> dict[str, str]:
        """Read the facts again."""
        return self.learn(await self.link.command("HGETALL", self.layout.meta("facts")))

    def learn(self, reply: Any) -> dict[str, str]:
        """Take over what the facts say, and return them."""
        facts = as_facts(reply)
        self.model = int(facts["model"])
        self.stored = EmbedderInfo(facts["embedder"], int(facts["dimension"]))
        coming = facts.get("next_embedder")
        self.coming = None if coming is None else EmbedderInfo(coming, int(facts["next_dimension"]))
        return facts


async def open_store(
    link: Link, prefix: str, embedder: EmbedderInfo, feeds_index: bool, hours: tuple[float, float]
) -> Store:
    """Write what an empty store says of itself, or read it. ``hours`` keep operations and turns.

    Raises InvalidConfig when a newer release wrote the data.
    """
    layout = Layout(prefix)
    values = [
        "format", FORMAT, "salt", secrets.token_hex(16), "epoch", 0, "pings", 0, "packs", 0, "hosts", 0,
        "hosts_revision", 0, "old_writes", 0,
    ]  # fmt: skip
    # One pair that must not be mixed of two: the first to write it wins with both.
    identity = ["embedder", embedder.name, "dimension", embedder.dimension, "model", 1]
    facts = as_facts(await link.script("stamp", [layout.meta("facts")], [len(identity), *identity, *values]))
    if int(facts["format"]) > FORMAT:
        raise InvalidConfig("ledger", f"has format {facts['format']}; this release reads up to {FORMAT}")
    operations_ms, turns_ms = (round((each + _MARGIN_H) * _HOUR_MS) for each in hours)
    store = Store(link, Layout(prefix, facts["salt"]), embedder, feeds_index, (operations_ms, turns_ms))
    store.learn(facts)
    return store


def as_facts(reply: Any) -> dict[str, str]:
    """A hash of texts, whichever way the client gives it."""
    if isinstance(reply, dict):
        pairs: Sequence[tuple[Any, Any]] = list(reply.items())
    else:
        pairs = list(zip(reply[::2], reply[1::2], strict=True))
    return {_text(key): _text(value) for key, value in pairs}


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
