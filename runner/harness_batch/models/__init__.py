"""Model providers behind one Protocol: wire formats, credentials, prices."""
