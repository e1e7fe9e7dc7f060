"""From recipes to items: matrix, digests, effective settings. Pure."""
