"""What is to be learnt, and by whom."""

from tutelage._config import configure as _configure

# Every other folder builds on this one, so double precision is on before any array is made.
_configure()
