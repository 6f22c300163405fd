"""The studies that installed packages announce, by name. Nothing is loaded for names, and nothing that computes."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "tutelage.studies"
"""The entry points of studies: `my_paper = "my_paper:STUDY"` below `[project.entry-points."tutelage.studies"]`."""


@cache
def installed() -> dict[str, EntryPoint]:
    """Where the studies are, by name.

    ```python
    >>> from tutelage.study.announced import installed
    >>> installed()["both_layers"].value
    'tutelage.papers.both_layers:PAPER'

    ```
    """
    return {each.name: each for each in sorted(entry_points(group=GROUP), key=lambda each: each.name)}
