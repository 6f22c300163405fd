"""One small mixture for all tests of its dynamics: runs of equal shape share their compiled code."""

import numpy as np

import tutelage as tt
from tutelage.oracle.mixture import units

TEACHER = tt.Mixture(routers=np.eye(2, 4), experts=np.eye(4)[2:])


def problem(dim=1000, start="unit", width=2, **options):
    """Two teachers with orthonormal vectors, two students."""
    return tt.Problem(tt.Gaussian(dim), TEACHER, tt.Mixture(start=tt.MixtureRows(start), width=width, **options))


def _half(view):
    return units(view.weights.first).expert @ units(view.teacher.first).expert.T - 0.5


def _routers(view):
    return units(view.weights.first).router @ units(view.teacher.first).router.T - 0.5


CROSSINGS = (
    tt.Crossings("expert_time", _half, ("student", "teacher")),
    tt.Crossings("router_time", _routers, ("student", "teacher")),
)
