"""Publishable readers, packaged as evidep.readers_hub: a recipe and a model card each, and the training entry."""
