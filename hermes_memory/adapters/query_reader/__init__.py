"""Reads what a recall query asks, by rules and without a model: times, tense, errands, names (SPEC §7.1, §7.2)."""

from hermes_memory.adapters.query_reader.loading import load_query_reader
from hermes_memory.adapters.query_reader.reader import QueryReader

__all__ = ["QueryReader", "load_query_reader"]
