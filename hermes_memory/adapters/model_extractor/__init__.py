"""Extraction by a language model: it proposes, the rules decide (SPEC §4.1, ARCHITECTURE §4)."""

from hermes_memory.adapters.model_extractor.building import build_model_extractor
from hermes_memory.adapters.model_extractor.extractor import ModelExtractor

__all__ = ["ModelExtractor", "build_model_extractor"]
