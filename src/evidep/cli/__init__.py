"""Command line of evidep: one file per command."""
