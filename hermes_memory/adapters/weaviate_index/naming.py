"""How users, memories and words are written in Weaviate."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hermes_memory.adapters.weaviate_index.faults import Refusal
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.index import Document

MAX_WORD_CHARS = 256  # a longer word is written as its digest: found as a whole like every other
MAX_WORDS_BYTES = 1 << 20
MAX_BATCH = 200  # documents
MAX_BATCH_BYTES = 2 << 20

_OBJECTS = uuid.UUID("4f0b8f0e-6f5e-5d3a-9d7e-0c6a4f6c2b11")  # the namespace of our object ids, chosen once
_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COLLECTION = re.compile(r"[A-Z][A-Za-z0-9_]{0,127}")


def checked_collection(name: str) -> str:
    """Return a name that a collection can have; else raise InvalidConfig."""
    if not _COLLECTION.fullmatch(name):
        raise InvalidConfig(
            "index.collection", "must be a capital letter, then letters, digits and underscores"
        )
    return name


def tenant_name(key: UserKey) -> str:
    """The user's tenant: a hash, so that the index names nobody. 41 characters of ``[A-Za-z0-9_-]``."""
    return f"u{key.hashed}"


def object_id(memory_id: str) -> uuid.UUID:
    """The object of a memory, the same for ever: feeding it twice replaces it."""
    return uuid.uuid5(_OBJECTS, memory_id)


def written(words: Iterable[str]) -> str:
    """Words as one text that splits into exactly them at its spaces."""
    return " ".join(escaped(word) for word in words)


def escaped(word: str) -> str:
    r"""A word without white space, and no two words alike: ``\`` and what is not printable become ``\<hex>;``."""
    if len(word) > MAX_WORD_CHARS:
        return f"\\#{digest(word.encode('utf-8', 'surrogatepass').hex())}"
    if word and word.isprintable() and " " not in word and "\\" not in word:
        return word
    return "".join(_plain(char) for char in word) or "\\;"


def _plain(char: str) -> str:
    return char if char.isprintable() and char not in " \\" else f"\\{ord(char):x};"


def unfit(document: Document, dimension: int) -> Refusal | None:
    """Why the document can never be stored, or None. The server itself would take a vector of NaN."""
    if not document.memory_id or not _is_utf8(document.memory_id):
        return Refusal.BAD_ID
    vector = document.vector
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        return Refusal.BAD_VECTOR
    if sum(len(word) for word in document.words) * 4 > MAX_WORDS_BYTES:
        return Refusal.TOO_LARGE
    return None


def batches(documents: Iterable[Document]) -> Iterator[Sequence[Document]]:
    """The documents in runs of at most ``MAX_BATCH`` and about ``MAX_BATCH_BYTES``."""
    run: list[Document] = []
    size = 0
    for document in documents:
        weight = 4 * (len(document.vector) + sum(len(word) + 1 for word in document.words))
        if run and (len(run) == MAX_BATCH or size + weight > MAX_BATCH_BYTES):
            yield run
            run, size = [], 0
        run.append(document)
        size += weight
    if run:
        yield run


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
