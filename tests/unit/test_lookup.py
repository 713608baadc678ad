"""What is not nominated can neither say the same nor contradict (SPEC §4.1.8, §6)."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from hermes_memory.core.conflicts import contradicts
from hermes_memory.core.lookup import Lookup
from hermes_memory.core.model import Category, Layer, Memory, Polarity, Status
from hermes_memory.core.text import content_hash, normal
from tests.small_world import DIMENSIONS, a_memory

OBJECTS = st.sampled_from(
    [
        "New York",
        "NewYork",
        "new york!",
        "york",
        "苏州",
        "苏州工业园区",
        "园区",
        "猫",
        "猫咪",
        "安静",
        "热闹的地方",
        "５００",
        "500",
        "500 dollars",
        "!!",
    ]
)
FIELDS = st.fixed_dictionaries(
    {
        "subject": st.sampled_from(["user", "User", "妈妈"]),
        "object": OBJECTS,
        "dimension": st.sampled_from(["city", "hometown", "pet", "environment", "unknown"]),
        "polarity": st.sampled_from(list(Polarity)),
        "layer": st.sampled_from([Layer.IDENTITY, Layer.PREFERENCE]),
        "status": st.sampled_from(list(Status)),
    }
)


def memory_of(number: int, fields: dict[str, Any]) -> Memory:
    content = f"{fields['subject']} {fields['object']}"
    return a_memory(
        id=f"m{number}", content=content, content_hash=content_hash(fields["subject"], fields["polarity"], content),
        category=Category.FACT, **fields,
    )  # fmt: skip


@given(st.lists(FIELDS, max_size=12), FIELDS)
def test_every_twin_and_every_contradiction_is_nominated(
    held: list[dict[str, Any]], new: dict[str, Any]
) -> None:
    memories = [memory_of(number, fields) for number, fields in enumerate(held)]
    lookup, statement = Lookup(DIMENSIONS, memories), memory_of(99, new)
    near = lookup.near(statement.content_hash, statement)
    assert near == sorted(near, key=lambda memory_id: int(memory_id[1:]))
    for memory in memories:
        same_subject = normal(memory.subject) == normal(statement.subject)
        twin = memory.content_hash == statement.content_hash or (
            same_subject
            and memory.dimension == statement.dimension
            and DIMENSIONS.akin(memory.dimension, memory.object, statement.object)
        )
        if memory.status is Status.SUPERSEDED:
            assert memory.id not in near
        elif twin or contradicts(statement, memory, DIMENSIONS):
            assert memory.id in near


def found(lookup: Lookup, **fields: Any) -> list[str]:
    return lookup.near("another", a_memory(**fields))


def test_it_follows_changes_and_removals() -> None:
    pet = a_memory(id="a", object="猫", dimension="pet", content_hash="h1")
    lookup = Lookup(DIMENSIONS, [pet])
    assert lookup.near("h1", a_memory(object="狗", dimension="pet")) == ["a"]
    lookup.put(pet.with_(object="狗", content_hash="h2"))
    assert lookup.near("h1", pet) == []
    assert found(lookup, object="狗", dimension="drink") == ["a"]
    lookup.put(pet.with_(status=Status.SUPERSEDED))
    assert found(lookup, object="狗", dimension="pet") == []
    lookup.put(pet)
    lookup.remove("a")
    lookup.remove("never there")
    assert found(lookup, object="猫", dimension="pet") == []


def test_a_single_valued_dimension_is_looked_up_whole() -> None:
    lookup = Lookup(DIMENSIONS, [a_memory(id="a", object="苏州", dimension="city")])
    assert found(lookup, object="北京", dimension="city") == ["a"]
    assert found(lookup, object="北京", dimension="pet") == []


def test_a_memory_of_another_person_is_not_nominated_by_its_words() -> None:
    lookup = Lookup(DIMENSIONS, [a_memory(id="a", object="苏州", content_hash="h1", subject="妈妈")])
    assert found(lookup, object="苏州") == []
    assert found(lookup, object="苏州", subject="妈妈") == ["a"]
