"""Invariants, checked by generated inputs and command sequences."""
