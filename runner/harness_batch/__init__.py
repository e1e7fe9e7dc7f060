"""Headless runner of LLM coding-agent sessions described by recipe files."""

__version__ = "0.1.0"
