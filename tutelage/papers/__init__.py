"""The papers the laboratory knows. Each is a `Paper`; `tutelage.papers.both_layers.run(...)` is one line."""

from tutelage._errors import unknown
from tutelage.papers.beyond_ntk import PAPER as beyond_ntk
from tutelage.papers.both_layers import PAPER as both_layers
from tutelage.papers.cluster_moe import PAPER as cluster_moe
from tutelage.papers.paper import Figure, Paper, Settings
from tutelage.papers.relu_teachers import PAPER as relu_teachers
from tutelage.papers.soft_moe import PAPER as soft_moe

_ALL = {paper.name: paper for paper in (beyond_ntk, both_layers, cluster_moe, relu_teachers, soft_moe)}


def names() -> list[str]:
    """The names of all papers."""
    return list(_ALL)


def get(name: str) -> Paper:
    """The paper of that name, or an error with the nearest one.

    ```python
    >>> import tutelage as tt
    >>> tt.papers.get("both_layers").name
    'both_layers'

    ```
    """
    if name not in _ALL:
        raise unknown("paper", name, _ALL)
    return _ALL[name]


__all__ = [
    "Figure",
    "Paper",
    "Settings",
    "beyond_ntk",
    "both_layers",
    "cluster_moe",
    "get",
    "names",
    "relu_teachers",
    "soft_moe",
]
