"""Conversations of other products in files: JSON lines, JSON arrays, and the formats they hold."""

from hermes_memory.adapters.conversation_files.reading import FORMATS, read_text

__all__ = ["FORMATS", "read_text"]
