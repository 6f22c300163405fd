"""Numbers do not change under an unchanged revision: stored runs of that revision are read as if computed today."""

import json

import numpy as np
import pytest
import revisions
from tables import PAPERS

from tutelage._revisions import REVISIONS

ADAPTIVE = {"flow", "neuron_flow", *PAPERS}
RECORDED = json.loads(revisions.RECORDED.read_text(encoding="utf-8"))


def test_what_produces_numbers_is_guarded():
    # The loop and its networks are in every run here.
    assert set(REVISIONS) - set(revisions.RUNS) == {"loop", "TwoLayer", "Experts"}


@pytest.mark.parametrize("name", revisions.RUNS)
def test_numbers_are_those_of_their_revision(name):
    recorded = RECORDED[name]
    assert recorded["revision"] == REVISIONS[name], "the revision was raised: run `python tests/revisions.py`"
    # Another machine adds in another order: 1e-10 of 50 updates; an adaptive flow follows to its tolerance, and so do
    # the papers that have one.
    np.testing.assert_allclose(
        revisions.numbers(name),
        recorded["numbers"],
        rtol=1e-6 if name in ADAPTIVE else 1e-9,
        atol=1e-12,
        err_msg=f"numbers of {name!r} changed: if that is meant, raise its revision in tutelage/_revisions.py and run "
        "`python tests/revisions.py`",
    )
