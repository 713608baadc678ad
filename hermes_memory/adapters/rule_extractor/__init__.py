"""Extraction by rules: the default without a model."""

from hermes_memory.adapters.rule_extractor.extractor import NAME, RuleExtractor, load_rule_extractor

__all__ = ["NAME", "RuleExtractor", "load_rule_extractor"]
