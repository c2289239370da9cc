"""The Space: what a visitor sees of evidep. Everything is computed by the package."""
