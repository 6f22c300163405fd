"""`python -m tutelage.rigour.verify proof.json`: check proofs with FLINT and nothing else of the package."""

import sys

from tutelage.rigour.verify import main

sys.exit(main(sys.argv[1:]))
