"""Tests on a real Ray cluster."""
