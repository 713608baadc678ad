"""Benchmarks: each measures beside a floor in the same run and declares its limits as data."""
