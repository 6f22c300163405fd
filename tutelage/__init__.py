"""tutelage: a laboratory for teacher-student learning dynamics."""

from tutelage._config import configure as _configure

_configure()

from tutelage._errors import BadInput as BadInput  # noqa: E402
from tutelage._errors import StopReason as StopReason  # noqa: E402
from tutelage.oracle.empirical import EmpiricalOracle as EmpiricalOracle  # noqa: E402
from tutelage.oracle.population import PopulationOracle as PopulationOracle  # noqa: E402
from tutelage.problem.initial import ChiEntries as ChiEntries  # noqa: E402
from tutelage.problem.initial import GaussianEntries as GaussianEntries  # noqa: E402
from tutelage.problem.initial import GaussianRows as GaussianRows  # noqa: E402
from tutelage.problem.initial import OrthonormalRows as OrthonormalRows  # noqa: E402
from tutelage.problem.initial import SphereRows as SphereRows  # noqa: E402
from tutelage.problem.inputs import Gaussian as Gaussian  # noqa: E402
from tutelage.problem.networks import TwoLayer as TwoLayer  # noqa: E402
from tutelage.problem.networks import Weights as Weights  # noqa: E402
from tutelage.problem.problem import Problem as Problem  # noqa: E402
from tutelage.dynamics.events import Event as Event  # noqa: E402
from tutelage.dynamics.events import below as below  # noqa: E402
from tutelage.experiment import descend as descend  # noqa: E402
from tutelage.experiment import flow as flow  # noqa: E402
from tutelage.trajectory.dataset import load as load  # noqa: E402
from tutelage.trajectory.observables import Observable as Observable  # noqa: E402
from tutelage.trajectory.run import Run as Run  # noqa: E402
