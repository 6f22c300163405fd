"""Certificates of mixtures: what is checked, and that all parts of an update are."""

import numpy as np
import pytest
from dynamics.mixtures import problem

import tutelage as tt


@pytest.mark.parametrize("parts", [("routers", "experts"), ("experts", "second")])
def test_updates_of_a_mixture(parts):
    """Descent with a rate of its own for the experts: each part moves by step * rate * gradient, or not at all."""
    run = tt.descend(problem(trains=parts), step=0.1, steps=3, record=2, rates={"experts": 0.5}, certify=True)
    updates = [row for row in run.certificate.rows if row.what.startswith("update")]
    assert len(updates) >= 2 and all(abs(row.independent) > 1e6 * row.tolerance for row in updates)
    assert run.certificate.ok, run.certificate.sentence
    assert {row.route for row in run.certificate.rows} >= {"100000 samples", "differences"}
    moved = np.asarray(run.final.first - run.start.first)[0, :2]
    assert np.any(moved) == ("routers" in parts)
