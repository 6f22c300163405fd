"""A drawn picture as a file. Apart from the drawing, which needs more."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from tutelage._files import deliver
from tutelage.present.theme import RC


def write(figure: Figure, path: Path, style: dict[Any, Any] = RC) -> None:
    """Write a picture, whole or not at all, and without a date inside, so that equal data give equal files."""
    suffix = path.suffix.lower()
    date = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}[suffix]
    with matplotlib.rc_context(style):
        deliver(path, lambda part: figure.savefig(part, format=suffix[1:], metadata=date), parents=True)
