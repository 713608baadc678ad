"""Configuration as data: TOML, YAML and JSON Lines files, installed with the package."""
