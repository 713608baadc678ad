"""Extraction by a language model: it proposes, the rules decide (SPEC §4.1, ARCHITECTURE §4)."""
