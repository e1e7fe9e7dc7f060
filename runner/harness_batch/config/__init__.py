"""The configuration door: files and environment in, one frozen record out."""
