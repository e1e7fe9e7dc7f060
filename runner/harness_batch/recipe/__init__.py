"""The recipe door: text in, frozen records out, all faults at once."""
