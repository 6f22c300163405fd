"""What kernel methods and other linear features can reach, exactly.

- `harmonics`: spherical harmonics of |w.x|, and the sharp bound for any N features; `hermite`: polynomials.
- `features`: the best predictor in random features and in neural tangent features.
- `ridge`: kernel ridge regression on samples, its population loss without a test set.
- `hardness`: teachers that no few features can learn.
"""

from tutelage.analysis.kernels.features import random_directions, random_features_loss, tangent_features_loss
from tutelage.analysis.kernels.hardness import (
    HardTeacher,
    block_constant,
    block_weight,
    collision_probability,
    disjoint_partitions,
    hard_teacher,
    hardness_bound,
    random_partition,
    sign_coefficient,
)
from tutelage.analysis.kernels.harmonics import (
    energies,
    even_degrees,
    feature_bound,
    harmonics,
    isotropic,
    legendre,
    mean_abs,
    power,
)
from tutelage.analysis.kernels.hermite import hermite_tail, teacher_power
from tutelage.analysis.kernels.ridge import KERNELS, GaussianKernel, Ridge, SampleKernel, ZonalKernel, kernel_ridge
from tutelage.analysis.kernels.solve import explained

__all__ = [
    "GaussianKernel",
    "HardTeacher",
    "KERNELS",
    "Ridge",
    "SampleKernel",
    "ZonalKernel",
    "block_constant",
    "block_weight",
    "collision_probability",
    "disjoint_partitions",
    "energies",
    "even_degrees",
    "explained",
    "feature_bound",
    "hard_teacher",
    "hardness_bound",
    "harmonics",
    "hermite_tail",
    "isotropic",
    "kernel_ridge",
    "legendre",
    "mean_abs",
    "power",
    "random_directions",
    "random_features_loss",
    "random_partition",
    "sign_coefficient",
    "tangent_features_loss",
    "teacher_power",
]
