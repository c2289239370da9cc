"""Readers: models that score the labels of (query, evidence) pairs."""
