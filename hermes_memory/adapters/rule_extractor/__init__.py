"""Extraction by rules: the default without a model."""

from hermes_memory.adapters.rule_extractor.extractor import NAME, RuleExtractor, load_rule_extractor
from hermes_memory.adapters.rule_extractor.hearing import Heard, HeardClause

__all__ = ["NAME", "Heard", "HeardClause", "RuleExtractor", "load_rule_extractor"]
