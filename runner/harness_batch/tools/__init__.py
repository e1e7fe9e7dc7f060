"""The tools that a model can call, one file each."""
