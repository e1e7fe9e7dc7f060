"""The folder a session works in, and the patch it leaves."""
