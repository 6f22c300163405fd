"""Revisions of whatever produces numbers, in one place that needs no JAX.

A number here is raised with every change of the numbers that the thing gives for the same question. It is part of the
name of a stored run, so that what an older revision computed is shown as such and never read as new.
`tests/test_revisions.py` compares numbers with those recorded for these revisions, and says what to raise.
"""

SCHEMA = 3
"""Of what a store keeps: raised when its files, or the description that names a run, are made otherwise."""
REVISIONS = {
    "loop": 2,
    "descent": 1,
    "heavy_ball": 1,
    "optimised": 1,
    "given": 1,
    "flow": 3,
    "sgd": 2,
    "ode": 1,
    "kernel": 1,
    "spherical": 1,
    "sphere": 1,
    "router": 2,
    "neuron_flow": 1,
    "neuron_sgd": 1,
    "TwoLayer": 1,
    "Mixture": 1,
    "Experts": 1,
    "both_layers": 2,
    "soft_moe": 1,
    "cluster_moe": 1,
    "relu_teachers": 1,
    "beyond_ntk": 1,
}


def outdated(revisions: dict[str, int]) -> dict[str, int]:
    """Those that are no longer the present ones.

    ```python
    >>> from tutelage._revisions import outdated
    >>> outdated({"loop": 0, "a dynamics of one's own": 3})
    {'loop': 0}

    ```
    """
    return {name: number for name, number in revisions.items() if REVISIONS.get(name, number) != number}
