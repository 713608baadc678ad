"""Which actor carries a user: the same one always, and few users move when the pool changes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.placement import Dedicated, Pooled, Seat, Seating, build_seating, carried, is_pooled
from hermes_memory.config import Placement
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.ledger import HostPool

USERS = [UserKey("app", f"user {number}") for number in range(2_000)]

ids = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20).filter(
    lambda text: text not in {".", ".."}
)


def pool_of(hosts: int) -> Pooled:
    return Pooled(HostPool(hosts, 1))


def owns(seating: Seating, name: str, key: UserKey) -> bool:
    return carried(seating, name, seating.pool)(key)


keys = st.builds(UserKey, ids, ids)


@given(keys, st.integers(1, 16))
def test_the_same_user_has_the_same_seat_in_every_process(key: UserKey, hosts: int) -> None:
    first, second = pool_of(hosts), build_seating(Placement.POOLED, HostPool(hosts))
    assert first.seat_of(key) == second.seat_of(UserKey.parse(str(key)))
    assert first.seat_of(key) in first.standing()
    assert [seat for seat in first.standing() if owns(first, seat.name, key)] == [first.seat_of(key)]


def test_a_seat_does_not_depend_on_the_process_s_hash_seed() -> None:
    assert [pool_of(4).seat_of(user).name for user in USERS[:8]] == [
        "hermes-host-3", "hermes-host-1", "hermes-host-2", "hermes-host-1",
        "hermes-host-1", "hermes-host-2", "hermes-host-3", "hermes-host-2",
    ]  # fmt: skip


@pytest.mark.parametrize("hosts", [1, 2, 3, 8])
def test_one_host_more_takes_its_share_and_moves_nobody_else(hosts: int) -> None:
    before, after = pool_of(hosts), pool_of(hosts + 1)
    new = after.standing()[-1]
    moved = [user for user in USERS if before.seat_of(user) != after.seat_of(user)]
    assert {after.seat_of(user) for user in moved} == {new}  # nobody between the old ones
    assert len(moved) / len(USERS) == pytest.approx(1 / (hosts + 1), rel=0.2)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 4), (4, 3), (3, 1), (8, 5)])
def test_a_change_moves_those_of_the_hosts_that_come_or_go_and_nobody_else(before: int, after: int) -> None:
    old, new = pool_of(before), pool_of(before).at(HostPool(after, 2))
    changed = set(old.standing()) ^ set(new.standing())
    moved = [user for user in USERS if old.seat_of(user) != new.seat_of(user)]
    assert all({old.seat_of(user), new.seat_of(user)} & changed for user in moved)
    share = abs(after - before) / max(after, before)
    assert len(moved) / len(USERS) == pytest.approx(share, rel=0.2)


def test_a_host_out_of_the_pool_carries_nobody() -> None:
    pool = pool_of(2)
    assert not any(owns(pool, "hermes-host-2", user) for user in USERS)
    empty = pool.at(HostPool())
    assert not any(owns(empty, "hermes-host-0", user) for user in USERS)
    assert empty.seat_of(USERS[0]) == Seat("hermes-host-0")  # somebody to ask how large the pool is


def test_the_hosts_of_a_pool_are_known_by_their_names() -> None:
    assert all(is_pooled(seat.name) for seat in pool_of(12).standing())
    assert not any(is_pooled(name) for name in ("hermes-user-ab12", "hermes-host-", "bench-hermes-host-1"))


def test_the_hosts_carry_about_the_same() -> None:
    carried = Counter(pool_of(5).seat_of(user) for user in USERS)
    assert len(carried) == 5
    assert max(carried.values()) / min(carried.values()) < 1.3


def test_namespaces_are_apart() -> None:
    pool = pool_of(8)
    same = sum(pool.seat_of(UserKey("a", u.user_id)) == pool.seat_of(UserKey("b", u.user_id)) for u in USERS)
    assert same / len(USERS) == pytest.approx(1 / 8, rel=0.2)


@given(keys, keys)
def test_a_dedicated_seat_is_one_user_s_own(left: UserKey, right: UserKey) -> None:
    seating = build_seating(Placement.DEDICATED, HostPool(3))
    assert isinstance(seating, Dedicated)
    assert seating.standing() == []
    assert seating.at(HostPool(5, 2)).seat_of(left) == seating.seat_of(left)
    assert (seating.seat_of(left) == seating.seat_of(right)) == (left == right)
    seat = seating.seat_of(left)
    assert seat.user == left
    assert owns(seating, seat.name, left)
    assert seat.name == f"hermes-user-{left.hashed}"  # names appear in logs


def test_a_seat_is_a_value() -> None:
    assert Seat("a") == Seat("a")
    assert len({Seat("a"), Seat("a"), Seat("b")}) == 2
