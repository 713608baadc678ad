"""Nights that are killed at random moments and go on: the end is that of a night that nothing disturbed (SPEC §9)."""
