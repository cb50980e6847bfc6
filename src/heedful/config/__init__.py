"""Configuration: recipes as dataclasses, their presets, and the loading and validation of TOML files."""
