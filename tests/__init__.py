"""The test suite; README.md describes its tiers."""
