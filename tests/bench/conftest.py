"""What a bench finds, made by hand."""

import copy

import pytest


def times(median: float, work: float = 1.0) -> dict[str, float]:
    return {"median": median, "low": 0.9 * median, "high": 1.1 * median, "count": 3, "work": work}


def call(seconds: float, **more: float) -> dict[str, float]:
    return {"seconds": seconds, "programs": 3, "compiling": 0.5, "memory_mb": 300.0, "memory_before_mb": 250.0} | more


CONTEST = {
    "name": "d=50, 200 records", "unit": "call", "agreement": "overlaps", "tolerance": 1e-5, "headline": True,
    "goals": {"diffrax": 2.0, "torch": 50.0}, "left_out": {"torch": ["torch"]}, "apart": {"diffrax": 1e-8},
    "times": {"tutelage": times(0.1), "diffrax": times(0.3), "SciPy": times(0.05)},
    "first": {"tutelage": call(2.0, cached=0.5), "diffrax": call(1.5)}, "first_goals": {"diffrax": 0.0},
    "limit": {"name": "random numbers", "seconds": 0.04, "goal": 0.5},
}  # fmt: skip
PRECISION = {
    "dim": 50, "until": 10.0, "records": 20, "references_apart": 1e-12,
    "rows": [{"entry": name, "rtol": rtol, "error": off * rtol, "steps": 7} | times(0.1 / rtol**0.1)
             for name, off in (("tutelage", 0.1), ("diffrax Tsit5", 0.2)) for rtol in (1e-4, 1e-8)],
}  # fmt: skip
GROWTH = {
    "name": "dimension d", "seconds": {"100": times(0.1), "1000": times(0.1)}, "exponent": 0.0, "expected": [0, 0],
}  # fmt: skip


@pytest.fixture
def found():
    """A flow that is three times as fast as diffrax, and how cost grows."""
    flow = {"title": "Flow", "contests": [copy.deepcopy(CONTEST)], "work_precision": PRECISION, "seconds": 9.0}
    growth = {"title": "Growth", "contests": [], "growth": [GROWTH], "seconds": 1.0}
    return {
        "date": "2030-01-02", "command": "tutelage bench", "commit": "abc", "quick": False, "seconds": 600.0,
        "machine": {"system": "Linux", "architecture": "x", "processor": None, "cores": 2, "load": 0.1,
                    "threads": "all"},
        "versions": {"python": "3", "jax": "1", "torch": None}, "cases": {"flow": flow, "growth": growth},
    }  # fmt: skip
