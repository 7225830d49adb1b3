"""``python -m zenwire``: the same as the ``zenwire`` command."""

import sys

from zenwire.cli.main import main

sys.exit(main())
