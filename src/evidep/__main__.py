"""`python -m evidep`: the command line."""

import sys

from evidep.cli import main

if __name__ == "__main__":
    sys.exit(main())
