"""`python -m rscan`."""

import sys

from .cli import main

sys.exit(main())
