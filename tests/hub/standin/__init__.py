"""A stand-in for the Hugging Face Hub on loopback: enough of its HTTP for the real client library.

It answers as that library expects (routes, status codes, error headers), keeps everything in memory, and can be told to
fail. It does not know the real Hub's rules about names, sizes, rate limits, cards or who may do what.
"""

from hub.standin.faults import Fault
from hub.standin.server import StandIn
from hub.standin.store import Problem, Repo, Store

__all__ = ["Fault", "Problem", "Repo", "StandIn", "Store"]
