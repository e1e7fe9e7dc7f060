"""Rules, shell commands and the judge. Pure."""
