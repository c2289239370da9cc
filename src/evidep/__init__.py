"""Evidence dependence: does a benchmark need the evidence that it hands to a system?"""

from evidep.version import __version__ as __version__
