"""Every test of this folder draws the figures of a packet once, and may talk to the stand-in."""

from hub.fixtures import claims, figures_drawn_once, standin

__all__ = ["claims", "figures_drawn_once", "standin"]
