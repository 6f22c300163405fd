"""The public names of this folder; `__init__.py` reads this file to load each when it is first used."""

from . import routing as routing
from .base import AbstractOracle as AbstractOracle
from .clustered import ClusterOracle as ClusterOracle
from .correlated import CorrelatedOracle as CorrelatedOracle
from .empirical import EmpiricalOracle as EmpiricalOracle
from .empirical import draw as draw
from .geometry import Angles as Angles
from .geometry import Rows as Rows
from .geometry import angles as angles
from .geometry import from_chords as from_chords
from .geometry import rows as rows
from .kernels.gated import Moments as Moments
from .kernels.gated import Overlaps as Overlaps
from .kernels.gated import series as series
from .kernels.shifted import shifted as shifted
from .kernels.shifted import shifted_coefficients as shifted_coefficients
from .mixture import MixtureOracle as MixtureOracle
from .mixture import units as units
from .penalised import PenalisedOracle as PenalisedOracle
from .population import PopulationOracle as PopulationOracle
from .population import population_oracle as population_oracle
from .routing import effective_rank as effective_rank
from .routing import expected_router as expected_router
from .routing import passing as passing
from .step_size import Balance as Balance
from .tied import TiedOracle as TiedOracle
