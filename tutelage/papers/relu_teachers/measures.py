"""What the paper and its corrected picture speak of, computed from the recorded variables of a run (orthogonal
teachers of one norm).

Each function takes a Dataset with the dims `student` and `teacher`, with or without `seed` and `time`.
"""

import math

import numpy as np
import xarray as xr

from tutelage.papers.relu_teachers.local import rate_from


def home(dataset: xr.Dataset) -> xr.DataArray:
    """tau_i: the teacher nearest to student i at the start (Section 2.1), frozen there."""
    return dataset["overlap_angle"].isel(time=0, drop=True).argmin("teacher")


def home_angles(dataset: xr.Dataset) -> xr.DataArray:
    """theta_i*: the angle of student i to the teacher that was nearest at the start."""
    return dataset["overlap_angle"].isel(teacher=home(dataset))


def nearest_angles(dataset: xr.Dataset) -> xr.DataArray:
    """The angle of each student to the teacher that is nearest now."""
    return dataset["overlap_angle"].min("teacher")


def nearest_cosines(dataset: xr.Dataset) -> xr.DataArray:
    """The cosine of each student to the teacher that is nearest now."""
    return dataset["overlap_cos"].max("teacher")


def heights(dataset: xr.Dataset, norm: float) -> xr.DataArray:
    """h_i* = w_i . e_tau: the projection of student i on the teacher that was nearest at the start."""
    return dataset["overlap"].isel(teacher=home(dataset)) / norm


def missing(dataset: xr.Dataset, norm: float) -> xr.DataArray:
    """H_l = |v| - sum of h_i* over the students that started nearest to teacher l."""
    teachers = xr.DataArray(np.arange(dataset.sizes["teacher"]), dims="teacher")
    belongs = home(dataset) == teachers
    return norm - (heights(dataset, norm) * belongs).sum("student")


def mean_cosines(dataset: xr.Dataset) -> xr.DataArray:
    """The cosine of each student to the mean direction of the teachers."""
    return dataset["overlap_cos"].sum("teacher") / math.sqrt(dataset.sizes["teacher"])


def spread(dataset: xr.Dataset) -> xr.DataArray:
    """How far the students' directions differ within the span of the teachers, across the mean direction (rms).

    Zero when all are on one ray, sqrt(1 - 1/k) when the students sit on the teachers in equal numbers.
    """
    across = dataset["overlap_cos"] - dataset["overlap_cos"].mean("teacher")
    differences = across - across.mean("student")
    return (differences**2).sum("teacher").mean("student") ** 0.5


def cubic_rate(dataset: xr.Dataset) -> xr.DataArray:
    """c = |grad|^2 / (3 L^(4/3)) = d(L^(-1/3))/ds along the flow: constant when L falls as s^-3 (Eq. 10)."""
    return xr.apply_ufunc(rate_from, dataset["gradient_norm"], dataset["loss"])
