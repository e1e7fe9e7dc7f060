"""Transcripts of other agents: a file in, frozen records and events out."""
