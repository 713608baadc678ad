"""Which actor carries a user: the same one always, and few users move when the pool changes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.placement import Dedicated, Pooled, Seat, build_seating, owns
from hermes_memory.config import Placement
from hermes_memory.core.ids import UserKey

USERS = [UserKey("app", f"user {number}") for number in range(2_000)]

ids = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20).filter(
    lambda text: text not in {".", ".."}
)
keys = st.builds(UserKey, ids, ids)


@given(keys, st.integers(1, 16))
def test_the_same_user_has_the_same_seat_in_every_process(key: UserKey, hosts: int) -> None:
    first, second = Pooled(hosts), build_seating(Placement.POOLED, hosts)
    assert first.seat_of(key) == second.seat_of(UserKey.parse(str(key)))
    assert first.seat_of(key) in first.standing()
    assert [seat for seat in first.standing() if owns(first, seat.name, key)] == [first.seat_of(key)]


def test_a_seat_does_not_depend_on_the_process_s_hash_seed() -> None:
    assert [Pooled(4).seat_of(user).name for user in USERS[:8]] == [
        "hermes-host-3", "hermes-host-1", "hermes-host-2", "hermes-host-1",
        "hermes-host-1", "hermes-host-2", "hermes-host-3", "hermes-host-2",
    ]  # fmt: skip


@pytest.mark.parametrize("hosts", [1, 2, 3, 8])
def test_one_host_more_takes_its_share_and_moves_nobody_else(hosts: int) -> None:
    before, after = Pooled(hosts), Pooled(hosts + 1)
    new = after.standing()[-1]
    moved = [user for user in USERS if before.seat_of(user) != after.seat_of(user)]
    assert {after.seat_of(user) for user in moved} == {new}  # nobody between the old ones
    assert len(moved) / len(USERS) == pytest.approx(1 / (hosts + 1), rel=0.2)


def test_the_hosts_carry_about_the_same() -> None:
    carried = Counter(Pooled(5).seat_of(user) for user in USERS)
    assert len(carried) == 5
    assert max(carried.values()) / min(carried.values()) < 1.3


def test_namespaces_are_apart() -> None:
    pool = Pooled(8)
    same = sum(pool.seat_of(UserKey("a", u.user_id)) == pool.seat_of(UserKey("b", u.user_id)) for u in USERS)
    assert same / len(USERS) == pytest.approx(1 / 8, rel=0.2)


@given(keys, keys)
def test_a_dedicated_seat_is_one_user_s_own(left: UserKey, right: UserKey) -> None:
    seating = build_seating(Placement.DEDICATED, 3)
    assert isinstance(seating, Dedicated)
    assert seating.standing() == []
    assert (seating.seat_of(left) == seating.seat_of(right)) == (left == right)
    seat = seating.seat_of(left)
    assert seat.user == left
    assert owns(seating, seat.name, left)
    assert seat.name == f"hermes-user-{left.hashed}"  # names appear in logs


def test_a_seat_is_a_value() -> None:
    assert Seat("a") == Seat("a")
    assert len({Seat("a"), Seat("a"), Seat("b")}) == 2
