"""Numbers that say whether something that produces numbers has changed; `python tests/revisions.py` records them.

Each is a small run. A change of its numbers that is meant raises the revision in `tutelage/_revisions.py`, and then
this file is run again; one that is not meant is an error.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import optax
from tables import PAPERS

import tutelage as tt
from tutelage._revisions import REVISIONS

RECORDED = Path(__file__).with_name("revisions.json")
NESTEROV = optax.sgd(0.1, momentum=0.9, nesterov=True)
TASKS = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))


def two_layer():
    teacher = tt.TwoLayer("relu", first=[[1.0, 0.0], [0.0, 1.0]])
    student = tt.TwoLayer("relu", first=tt.GaussianRows(0.1), second="ones", width=3)
    return tt.Problem(tt.Gaussian(50), teacher, student, noise=0.1)


def on_sphere():
    student = tt.TwoLayer("relu", first=tt.SphereRows(1.0), second="ones", width=1, trains=("first",))
    return tt.Problem(tt.Gaussian(50), two_layer().teacher, student, noise=0.1)


def smooth():
    student = tt.TwoLayer("erf", first=[[0.5, 0.2]], trains=("first",))
    return tt.Problem(tt.Gaussian(50), tt.TwoLayer("erf", first=[[1.0, 0.0]]), student, noise=0.1)


def mixture():
    teacher = tt.Mixture("sigmoid", degree=3, routers=np.eye(4)[:1], experts=np.eye(4)[1:2])
    return tt.Problem(tt.Gaussian(100), teacher, tt.Mixture("sigmoid", degree=3, start=tt.MixtureRows("iid"), width=2))


def clustered():
    from tutelage.problem.clusters import antipodal

    return tt.Clustered(antipodal(8, 3.0), TASKS).taught_to(tt.Experts(2, 3))


def routed():
    def fixed(handover):
        return handover

    stages = [
        tt.Stage("explore", tt.Spherical(samples=9000, step=1e-3)),
        tt.Stage("router", tt.RouterSteps(samples=500, steps=2), fixed),
    ]
    return tt.run(clustered(), stages)


def of_paper(name):
    """A sum for each variable of a small run of the paper: its settings, its plan, what it records and adds."""
    paper = tt.papers.get(name)
    data = paper.run(paper.configure(PAPERS[name].settings), record=6).dataset
    sizes = [abs(data[each].values) for each in sorted(data.data_vars) if data[each].dtype.kind == "f"]
    return [np.sum(values[np.isfinite(values)]) for values in sizes]


RUNS = {
    "descent": lambda: tt.run(two_layer(), tt.Descent(step=0.1, steps=50)).last("loss"),
    "heavy_ball": lambda: tt.run(two_layer(), tt.HeavyBall(step=0.1, steps=50)).last("loss"),
    "optimised": lambda: tt.run(two_layer(), tt.Optimised(NESTEROV, steps=50)).last("loss"),
    "given": lambda: tt.run(two_layer(), tt.Given(np.full((2, two_layer().student.width, 50), 0.1))).last("loss"),
    "flow": lambda: tt.run(two_layer(), tt.Flow(until=5.0)).last("loss"),
    # Fewer samples than units: with more, rounding may choose among factors of the noise that have one law.
    "sgd": lambda: tt.run(two_layer(), tt.Sgd(step=0.05, steps=50, batch=2)).last("loss"),
    "ode": lambda: tt.run(smooth(), tt.Ode(rate=0.5, until=2.0)).last("loss"),
    "kernel": lambda: tt.run(smooth(), tt.KernelFlow(until=2.0)).last("loss"),
    "Mixture": lambda: tt.run(mixture(), tt.Descent(step=0.1, steps=20)).last("loss"),
    "spherical": lambda: tt.run(clustered(), tt.Spherical(samples=9000, step=1e-3)).overlap[0, -1, 0, 0],
    "neuron_flow": lambda: tt.run(clustered(), tt.NeuronFlow(until=100.0), record=4).last("overlap")[0, 0],
    "neuron_sgd": lambda: tt.run(clustered(), tt.NeuronSgd(samples=200, step=1e-2), record=4).last("overlap")[0, 0],
    "sphere": lambda: tt.run(on_sphere(), tt.Sphere(samples=200, step=1e-2)).last("overlap"),
    "router": lambda: np.asarray(routed().final.theta)[0, 0],
    **{name: partial(of_paper, name) for name in PAPERS},
}
"""By the name of the revision that guards it; "loop" and "TwoLayer" are in all of the first."""


def numbers(name):
    return [float(value) for value in np.ravel(RUNS[name]())]


if __name__ == "__main__":
    found = {name: {"revision": REVISIONS[name], "numbers": numbers(name)} for name in RUNS}
    RECORDED.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
