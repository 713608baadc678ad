"""Which Ray actor carries a user (ARCHITECTURE §2, ADR 5)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from hermes_memory.config import Placement
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.ledger import HostPool
from hermes_memory.runtime.seating import Owns

POOLED = "hermes-host-"  # and a number


@dataclass(frozen=True, slots=True)
class Seat:
    """A named actor: one of a pool, or one user's own."""

    name: str
    user: UserKey | None = None


class Seating(Protocol):
    """Maps users to named actors; the same user always gets the same one of a pool of the same size."""

    pool: HostPool

    def seat_of(self, key: UserKey) -> Seat:
        """The actor that carries the user. Only where there is one: ``standing`` or on demand."""
        ...

    def standing(self) -> list[Seat]:
        """The actors that exist from the start."""
        ...

    def at(self, pool: HostPool) -> Seating:
        """The same kind of seating with a pool of another size."""
        ...


class Pooled:
    """Named hosts; rendezvous hashing, so that a change of their number moves as few users as it can."""

    def __init__(self, pool: HostPool) -> None:
        self.pool = pool
        self._seats = [Seat(f"{POOLED}{number}") for number in range(pool.hosts)]

    def seat_of(self, key: UserKey) -> Seat:
        """The host with the highest weight for the user; of an empty pool the one that every pool has."""
        return max(self._seats, key=lambda seat: _weight(seat.name, key), default=Seat(f"{POOLED}0"))

    def standing(self) -> list[Seat]:
        """All hosts of the pool."""
        return list(self._seats)

    def at(self, pool: HostPool) -> Pooled:
        """The pool with another number of hosts."""
        return Pooled(pool)


class Dedicated:
    """One actor for each user, created on demand: for a few heavy users. The size of a pool means nothing here."""

    def __init__(self, pool: HostPool) -> None:
        self.pool = pool

    def seat_of(self, key: UserKey) -> Seat:
        """The user's own actor."""
        return Seat(f"hermes-user-{key.hashed}", key)

    def standing(self) -> list[Seat]:
        """None: they come with their users."""
        return []

    def at(self, pool: HostPool) -> Dedicated:
        """The same."""
        return Dedicated(pool)


def build_seating(placement: Placement, pool: HostPool) -> Seating:
    """The configured placement."""
    return Pooled(pool) if placement is Placement.POOLED else Dedicated(pool)


def carried(seating: Seating, seat_name: str, pool: HostPool) -> Owns:
    """Whom the actor of that name carries while the pool is of that size."""
    seats = seating.at(pool)
    named = {seat.name for seat in seats.standing()}

    def owns(key: UserKey) -> bool:
        seat = seats.seat_of(key)
        return seat.name == seat_name and (seat.user is not None or seat_name in named)

    return owns


def is_pooled(name: str) -> bool:
    """Whether an actor of that name is one of a pool."""
    return name.startswith(POOLED) and name.removeprefix(POOLED).isdecimal()


def _weight(name: str, key: UserKey) -> bytes:
    return blake2b(f"{name}\n{key}".encode(), digest_size=8).digest()
