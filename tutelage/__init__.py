"""tutelage: a laboratory for teacher-student learning dynamics.

Public names are loaded when first used, so that `import tutelage` and `tutelage --help` are quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tutelage._errors import BadInput as BadInput
from tutelage._errors import StopReason as StopReason
from tutelage._version import __version__ as __version__

if TYPE_CHECKING:
    from tutelage import papers as papers
    from tutelage.analysis.pruning import prune as prune
    from tutelage.analysis.pruning import prune_run as prune_run
    from tutelage.dynamics.descent import Descent as Descent
    from tutelage.dynamics.descent import Truncation as Truncation
    from tutelage.dynamics.events import Crossings as Crossings
    from tutelage.dynamics.events import Event as Event
    from tutelage.dynamics.events import below as below
    from tutelage.dynamics.flow import Flow as Flow
    from tutelage.dynamics.neuron_flow import flow_overlaps as flow_overlaps
    from tutelage.dynamics.online import Sgd as Sgd
    from tutelage.dynamics.record import Record as Record
    from tutelage.dynamics.record import Stop as Stop
    from tutelage.dynamics.router import route as route
    from tutelage.dynamics.spherical import Spherical as Spherical
    from tutelage.oracle.clustered import ClusterOracle as ClusterOracle
    from tutelage.oracle.empirical import EmpiricalOracle as EmpiricalOracle
    from tutelage.oracle.kernels import kernel as kernel
    from tutelage.oracle.mixture import MixtureOracle as MixtureOracle
    from tutelage.oracle.population import PopulationOracle as PopulationOracle
    from tutelage.oracle.step_size import recommended_step as recommended_step
    from tutelage.oracle.tied import TiedOracle as TiedOracle
    from tutelage.problem.activations import Activation as Activation
    from tutelage.problem.activations import activation as activation
    from tutelage.problem.clusters import Clustered as Clustered
    from tutelage.problem.clusters import Clusters as Clusters
    from tutelage.problem.clusters import Tasks as Tasks
    from tutelage.problem.initial import ChiEntries as ChiEntries
    from tutelage.problem.initial import GaussianEntries as GaussianEntries
    from tutelage.problem.initial import GaussianRows as GaussianRows
    from tutelage.problem.initial import MixtureRows as MixtureRows
    from tutelage.problem.initial import OrthonormalRows as OrthonormalRows
    from tutelage.problem.initial import SphereRows as SphereRows
    from tutelage.problem.initial import WeakRecoveryRows as WeakRecoveryRows
    from tutelage.problem.inputs import Gaussian as Gaussian
    from tutelage.problem.mixture import Mixture as Mixture
    from tutelage.problem.networks import TwoLayer as TwoLayer
    from tutelage.problem.networks import Weights as Weights
    from tutelage.problem.problem import Problem as Problem
    from tutelage.problem.problem import Start as Start
    from tutelage.problem.routers import Threshold as Threshold
    from tutelage.problem.routers import Top1 as Top1
    from tutelage.problem.routers import TopK as TopK
    from tutelage.problem.units import Experts as Experts
    from tutelage.problem.units import Units as Units
    from tutelage.store.store import Store as Store
    from tutelage.study.sweep import sweep as sweep
    from tutelage.trajectory.asked import Handover as Handover
    from tutelage.trajectory.asked import Stage as Stage
    from tutelage.trajectory.dataset import load as load
    from tutelage.trajectory.measures import Measure as Measure
    from tutelage.trajectory.observables import Observable as Observable
    from tutelage.trajectory.observables import loss_orders as loss_orders
    from tutelage.trajectory.result import Run as Run
    from tutelage.verbs import descend as descend
    from tutelage.verbs import flow as flow
    from tutelage.verbs import go_on as go_on
    from tutelage.verbs import run as run
    from tutelage.verbs import sgd as sgd
    from tutelage.verbs import spherical as spherical

_HOME = {
    "go_on": "verbs",
    "run": "verbs",
    "Flow": "dynamics.flow",
    "Descent": "dynamics.descent",
    "Sgd": "dynamics.online",
    "Record": "dynamics.record",
    "Stop": "dynamics.record",
    "Stage": "trajectory.asked",
    "Handover": "trajectory.asked",
    "Start": "problem.problem",
    "papers": "",
    "prune": "analysis.pruning",
    "prune_run": "analysis.pruning",
    "Truncation": "dynamics.descent",
    "Crossings": "dynamics.events",
    "Event": "dynamics.events",
    "below": "dynamics.events",
    "flow_overlaps": "dynamics.neuron_flow",
    "route": "dynamics.router",
    "descend": "verbs",
    "flow": "verbs",
    "sgd": "verbs",
    "recommended_step": "oracle.step_size",
    "ClusterOracle": "oracle.clustered",
    "EmpiricalOracle": "oracle.empirical",
    "kernel": "oracle.kernels",
    "MixtureOracle": "oracle.mixture",
    "PopulationOracle": "oracle.population",
    "TiedOracle": "oracle.tied",
    "Activation": "problem.activations",
    "activation": "problem.activations",
    "Clustered": "problem.clusters",
    "Clusters": "problem.clusters",
    "Tasks": "problem.clusters",
    "ChiEntries": "problem.initial",
    "GaussianEntries": "problem.initial",
    "GaussianRows": "problem.initial",
    "MixtureRows": "problem.initial",
    "OrthonormalRows": "problem.initial",
    "SphereRows": "problem.initial",
    "WeakRecoveryRows": "problem.initial",
    "Gaussian": "problem.inputs",
    "Mixture": "problem.mixture",
    "TwoLayer": "problem.networks",
    "Weights": "problem.networks",
    "Problem": "problem.problem",
    "Threshold": "problem.routers",
    "Top1": "problem.routers",
    "TopK": "problem.routers",
    "Experts": "problem.units",
    "Units": "problem.units",
    "Store": "store.store",
    "sweep": "study.sweep",
    "load": "trajectory.dataset",
    "Measure": "trajectory.measures",
    "Observable": "trajectory.observables",
    "loss_orders": "trajectory.observables",
    "Run": "trajectory.result",
    "Spherical": "dynamics.spherical",
    "spherical": "verbs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"tutelage has no {name!r}; it has {', '.join(__dir__())}.")
    home = importlib.import_module(f"tutelage.{_HOME[name] or name}")
    return getattr(home, name) if _HOME[name] else home


def __dir__() -> list[str]:
    return sorted(["BadInput", "StopReason", "__version__", *_HOME])
