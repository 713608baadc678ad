"""Which Ray actor carries a user (ARCHITECTURE §2)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from hermes_memory.config import Placement
from hermes_memory.core.ids import UserKey


@dataclass(frozen=True, slots=True)
class Seat:
    """A named actor: one of a pool, or one user's own."""

    name: str
    user: UserKey | None = None


class Seating(Protocol):
    """Maps users to named actors; the same user always gets the same one."""

    def seat_of(self, key: UserKey) -> Seat:
        """The actor that carries the user."""
        ...

    def standing(self) -> list[Seat]:
        """The actors that exist from the start."""
        ...


class Pooled:
    """N named hosts; rendezvous hashing, so that a change of N moves as few users as it can."""

    def __init__(self, hosts: int) -> None:
        self._seats = [Seat(f"hermes-host-{number}") for number in range(hosts)]

    def seat_of(self, key: UserKey) -> Seat:
        """The host with the highest weight for the user."""
        return max(self._seats, key=lambda seat: _weight(seat.name, key))

    def standing(self) -> list[Seat]:
        """All hosts of the pool."""
        return list(self._seats)


class Dedicated:
    """One actor for each user, created on demand: for a few heavy users."""

    def seat_of(self, key: UserKey) -> Seat:
        """The user's own actor."""
        return Seat(f"hermes-user-{key.hashed}", key)

    def standing(self) -> list[Seat]:
        """None: they come with their users."""
        return []


def build_seating(placement: Placement, hosts: int) -> Seating:
    """The configured placement."""
    return Pooled(hosts) if placement is Placement.POOLED else Dedicated()


def owns(seating: Seating, seat_name: str, key: UserKey) -> bool:
    """Whether the actor of that name carries the user."""
    return seating.seat_of(key).name == seat_name


def _weight(name: str, key: UserKey) -> bytes:
    return blake2b(f"{name}\n{key}".encode(), digest_size=8).digest()
