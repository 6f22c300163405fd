"""Names of what is asked for: another name for any change, the same one in every process, and none for the nameless."""

import copy
import dataclasses
import enum
import functools
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.typing import NDArray
from tables import DYNAMICS, members

import tutelage as tt
from tutelage._errors import BadInput
from tutelage._identity import described, digest, identity
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics
from tutelage.papers.cluster_moe.plan import SecondLayer
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem.clusters import antipodal
from tutelage.trajectory.asked import Asked

FACTOR = 2.0


def slower(number):
    return FACTOR / (1 + number)


def slowest(number):
    return slower(number) / (1 + number)


def power(exponent):
    return lambda number: (1 + number) ** exponent


def loss_of(view):
    return view.loss


def network(**changes):
    values = {"activation_": "relu", "first": tt.GaussianRows(1e-3), "second": "ones", "width": 2} | changes
    return tt.TwoLayer(values.pop("activation_"), **values)


def mixture(**changes):
    return tt.Mixture(**{"start": tt.MixtureRows("orthonormal"), "width": 3} | changes)


def problem(**changes):
    teacher = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    return tt.Problem(**{"inputs": tt.Gaussian(50), "teacher": teacher, "student": network()} | changes)


X, Y = np.arange(12.0).reshape(3, 4), np.arange(3.0)


def moved(array, by=1.0):
    """The same array but for one entry."""
    other = np.array(array)
    other.flat[-1] = np.nextafter(other.flat[-1], by + other.flat[-1])
    return other


# A thing, and what changes of it one at a time. Every one must have a name of its own.
CHANGES = {
    "Problem": (problem, {
        "inputs": tt.Gaussian(51), "teacher": tt.TwoLayer("relu", first=[[1.0, 1e-16]]), "student": network(width=3),
        "noise": 1e-300, "penalty": tt.Penalty(),
    }),
    "Penalty": (lambda **c: tt.Penalty(**{"first": 0.1, "second": 0.2} | c), {
        "first": np.nextafter(0.1, 1), "second": np.nextafter(0.2, 1),
    }),
    "TwoLayer": (network, {
        "activation_": "erf", "first": tt.GaussianRows(np.nextafter(1e-3, 1)), "second": "mean", "width": 3,
        "outputs": 2, "trains": ("first",), "tied": True, "biases": 0.0,
    }),
    "biases": (lambda **c: network(**{"biases": [0.1, 0.2]} | c), {
        "biases": [0.1, np.nextafter(0.2, 1)],
    }),
    "a law of biases": (lambda **c: network(**{"biases": tt.GaussianEntries(0.1)} | c), {
        "biases": tt.GaussianEntries(0.2),
    }),
    "Gaussian": (lambda **c: tt.Gaussian(**{"dim": 50} | c), {
        "dim": 51, "covariance": [2.0], "mean": [0.0],
    }),
    "mean": (lambda **c: tt.Gaussian(**{"dim": 50, "mean": [2.0, 3.0]} | c), {
        "mean": [2.0, np.nextafter(3.0, 4)],
    }),
    "covariance": (lambda **c: tt.Gaussian(**{"dim": 50, "covariance": [2.0, 3.0]} | c), {
        "covariance": [[2.0, 1e-16], [1e-16, 3.0]],
    }),
    "a list of activations": (lambda **c: network(**{"activation_": ["relu", "erf"]} | c), {
        "activation_": ["erf", "relu"], "tied": True,
    }),
    "laws": (network, {
        "first": tt.SphereRows(1e-3), "second": tt.GaussianEntries(1.0), "width": 4,
    }),
    "given weights": (lambda **c: tt.TwoLayer("relu", **{"first": X + 1, "second": Y} | c), {
        "first": moved(X + 1), "second": moved(Y),
    }),
    "Mixture": (mixture, {
        "gate": "probit", "degree": 4, "start": tt.MixtureRows("iid"), "width": 4, "second": "mean", "outputs": 2,
        "trains": ("routers",),
    }),
    "Descent": (lambda **c: tt.Descent(**{"step": 0.1, "steps": 10} | c), {
        "step": np.nextafter(0.1, 1), "steps": 11, "data": 7, "schedule": slower, "truncation": tt.Truncation((2.0,)),
        "rates": {"second": 0.1},
    }),
    "Flow": (lambda **c: tt.Flow(**{"until": 10.0} | c), {
        "until": 11.0, "rtol": 1e-9, "solver": "stiff", "data": 7, "rates": {"first": 2.0},
    }),
    "Sgd": (lambda **c: tt.Sgd(**{"steps": 10, "batch": 4, "step": 0.1} | c), {
        "steps": 11, "batch": 5, "step": 0.2, "law": "direct", "dtype": "float32", "schedule": slower,
        "rates": {"second": 0.1},
    }),
    "Ode": (lambda **c: tt.Ode(**{"rate": 0.5, "until": 10.0} | c), {
        "rate": 0.4, "until": 11.0, "batch": 2, "rtol": 1e-7,
    }),
    "optimiser": (lambda **c: tt.Sgd(**{"steps": 10, "batch": 4, "optimiser": optax.sgd(0.1)} | c), {
        "optimiser": optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)), "steps": 11,
    }),
    "Optimised": (lambda **c: tt.Optimised(**{"optimiser": optax.sgd(0.1), "steps": 10} | c), {
        "optimiser": optax.sgd(0.2), "steps": 11, "space": "full", "data": 7, "rates": {"first": 2.0},
    }),
    "Given": (lambda **c: tt.Given(**{"first": X[None], "second": np.ones((1, 3, 1)), "times": [1.0]} | c), {
        "first": moved(X)[None], "second": moved(np.ones((1, 3, 1))), "times": [2.0], "biases": np.ones((1, 3)),
    }),
    "Sphere": (lambda **c: tt.Sphere(**{"samples": 10, "step": 0.1} | c), {
        "samples": 11, "step": 0.2, "loss": "squared",
    }),
    "a step of an optimiser": (lambda **c: optax.sgd(**{"learning_rate": 0.1} | c), {
        "learning_rate": 0.2, "momentum": 0.9,
    }),
    "Record": (lambda **c: tt.Record(**c), {
        "at": 50, "first": 0.1, "observables": ("loss",), "own": {"mine": loss_of}, "weights": True,
        "events": (tt.below(1e-3),), "crossings": (tt.Crossings("passed", loss_of),),
    }),
    "own observables": (lambda **c: tt.Observable(**{"name": "mine", "measure": loss_of} | c), {
        "name": "other", "measure": lambda view: 2 * view.loss, "dims": ("unit",), "long_name": "words", "units": "m",
        "coords": (("unit", (1, 2)),),
    }),
    "Event": (lambda **c: tt.Event(**{"name": "here", "when": loss_of} | c), {
        "name": "there", "when": lambda view: view.loss - 1, "stop": True,
    }),
    "Stop": (lambda **c: tt.Stop(**c), {"loss": 1e-9, "gradient": 0.0, "steps": 5}),
    "Truncation": (lambda **c: tt.Truncation(**{"caps": (2.0, 5.0), "ends": (10,)} | c), {
        "caps": (2.0, np.inf), "ends": (11,),
    }),
    "Stage": (lambda **c: tt.Stage(**{"name": "one", "dynamics": tt.Flow(1.0)} | c), {
        "name": "two", "dynamics": tt.Flow(2.0), "enter": lambda handover: handover, "record": tt.Record(5),
        "stop": tt.Stop(1e-3),
    }),
    "Asked": (lambda **c: Asked(**{"problem": problem(), "plan": tt.Flow(1.0), "seeds": (0, 1)} | c), {
        "problem": problem(noise=0.5), "plan": tt.Flow(2.0), "seeds": (1, 0), "record": tt.Record(5),
        "stop": tt.Stop(1e-3), "start": tt.Start(problem().begin(0).teacher, problem().begin(1).student),
    }),
}  # fmt: skip


def name_of(thing):
    return thing.identity if isinstance(thing, Asked) else identity(thing)


@pytest.mark.parametrize("what", CHANGES)
def test_every_field_makes_a_difference_and_equal_content_does_not(what):
    make, changes = CHANGES[what]
    names = [name_of(make()), *(name_of(make(**{name: value})) for name, value in changes.items())]
    assert len(set(names)) == len(names), dict(zip(["", *changes], names, strict=True))
    assert name_of(make()) == names[0]


@pytest.mark.parametrize(
    "what", ["Problem", "Descent", "Flow", "Sgd", "Record", "Stop", "Truncation", "Stage", "Asked"]
)
def test_no_field_is_forgotten_above(what):
    """A field that is new must be in the table."""
    make, changes = CHANGES[what]
    fields = {each.name for each in dataclasses.fields(make()) if each.compare}
    assert fields - set(changes) - {"optimiser"} == set()


def parts(thing):
    """The fields of a thing, whatever it is made of."""
    if dataclasses.is_dataclass(thing):
        return [each.name for each in dataclasses.fields(thing)]
    return list(vars(thing)) if type(thing).__module__.startswith("tutelage") else []


def altered(thing, place=""):
    """Copies of a thing in which one field, at any depth, is another; with where that is."""
    for name in parts(thing):
        copy_ = copy.copy(thing)
        object.__setattr__(copy_, name, "something else")
        yield f"{place}.{name}", copy_
        for deeper, part in altered(getattr(thing, name), f"{place}.{name}"):
            copy_ = copy.copy(thing)
            object.__setattr__(copy_, name, part)
            yield deeper, copy_


CLUSTERS = tt.Clustered(
    antipodal(20, 3.0), tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0)),
    student=tt.Experts(1, 4),
)  # fmt: skip
MIXED = tt.Mixture(routers=np.eye(1, 2), experts=np.eye(2)[1:])
PROBLEMS = {"networks": problem(), "mixtures": problem(student=mixture(), teacher=MIXED), "clusters": CLUSTERS}
NEURONS = (tt.Spherical(100, 1e-3), tt.RouterSteps(100), tt.NeuronFlow(10.0), tt.NeuronSgd(100, 1e-3),
           SecondLayer(ClusterMoeSettings()))  # fmt: skip


def asked_by_the_table(monkeypatch):
    """What each row of the table of dynamics asks for; nothing is run."""
    found = []
    monkeypatch.setattr("tutelage.verbs.ask", lambda asked, **options: found.append(asked))
    for row in DYNAMICS.values():
        row.move(PROBLEMS["networks"], (0, 1))
    return found


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # of settings that cannot be
def test_every_field_of_every_problem_and_dynamics_is_part_of_the_name(monkeypatch):
    every = asked_by_the_table(monkeypatch)
    every += [dataclasses.replace(every[0], problem=each) for each in PROBLEMS.values()]
    every += [dataclasses.replace(every[0], problem=CLUSTERS, plan=each) for each in NEURONS]
    every += [dataclasses.replace(every[0], plan=tt.Given(np.ones((2, 2, 50)), np.ones((2, 2, 1))))]
    assert {type(each.plan) for each in every} == members(AbstractDynamics)
    seen = 0
    for asked in every:
        for part in (asked.problem, asked.plan, asked.record, asked.stop):
            for place, other in altered(part):
                assert identity(other) != identity(part), f"{type(part).__name__}{place}"
                seen += 1
    assert seen > 300


@pytest.mark.parametrize("what", ["TwoLayer", "Mixture"])
def test_no_part_of_a_network_is_forgotten(what):
    made, described_ = CHANGES[what][0](), described(CHANGES[what][0]())
    assert set(vars(made)) == set(described_) - {"is"}


def test_a_paper_its_settings_and_every_revision_make_a_difference(monkeypatch):
    """A paper says of a run what another would not; and numbers of code that has changed are others."""

    def asked(**about):
        return Asked(problem(), tt.Flow(1.0), (0, 1), about=about)

    told = [asked(), asked(paper="a"), asked(paper="b"), asked(paper="a", settings={"dim": 5})]
    told += [asked(paper="a", settings={"dim": 6}), asked(paper="a", revision=2)]
    names = [each.identity for each in told]
    assert len(set(names)) == len(names)
    assert asked(dynamics="for listings only").identity == names[0]
    for name in ("loop", "TwoLayer"):
        with monkeypatch.context() as later:
            later.setitem(REVISIONS, name, REVISIONS.get(name, 1) + 1)
            assert asked().identity != names[0]
    monkeypatch.setattr(tt.Flow, "revision", tt.Flow.revision + 1)
    assert asked().revisions["flow"] == tt.Flow.revision and asked().identity != names[0]


# ---- functions


def test_functions_count_by_what_they_compute(monkeypatch):
    assert identity(power(2)) == identity(power(2)) != identity(power(3))
    assert identity(slower) != identity(slowest)
    assert identity(functools.partial(pow, 2)) != identity(functools.partial(pow, 3))
    before = identity(slower), identity(slowest)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    assert identity(slower) != before[0] and identity(slowest) != before[1]  # also through a helper


def test_defaults_and_keywords_count():
    one, other = (lambda number, factor=factor: number * factor for factor in (1, 2))
    assert identity(one) != identity(other)

    def keyed(number, *, factor):
        return number * factor

    before = identity(keyed)
    keyed.__kwdefaults__ = {"factor": 2}
    assert identity(keyed) != before


def test_arrays_around_a_function_count():
    def scaled(by):
        return lambda number: number * by

    assert identity(scaled(X)) == identity(scaled(X.copy())) != identity(scaled(moved(X)))
    assert identity(scaled(jnp.asarray(X))) == identity(scaled(X))


def test_functions_of_jax_count_by_what_they_wrap():
    double, triple = (functools.partial(lambda number, by: number * by, by=by) for by in (2, 3))
    assert identity(jax.jit(slower)) == identity(jax.jit(slower)) != identity(jax.jit(slowest))
    assert identity(jax.vmap(double)) == identity(jax.vmap(double)) != identity(jax.vmap(triple))
    assert identity(jax.jit(slower)) != identity(jax.grad(slower))


def test_functions_that_call_one_another_have_a_name():
    assert identity(even) == identity(even) != identity(odd)


def even(number):
    return True if number == 0 else odd(number - 1)


def odd(number):
    return False if number == 0 else even(number - 1)


def wrapped(factor):
    """A decorator that keeps the name of what it wraps."""
    if factor == 2:

        def decorate(function):
            @functools.wraps(function)
            def inner(number):
                return 2 * function(number)

            return inner
    else:

        def decorate(function):
            @functools.wraps(function)
            def inner(number):
                return 3 * function(number)

            return inner

    return decorate


def test_a_wrapper_counts_beside_what_it_wraps():
    assert identity(wrapped(2)(slower)) == identity(wrapped(2)(slower))
    assert len({identity(each) for each in (slower, wrapped(2)(slower), wrapped(3)(slower))}) == 3


class Plain:
    def __init__(self, value):
        self.value = value


def holding(*values):
    return lambda number: (number, values)


def test_which_of_two_comes_again_makes_a_difference():
    one, two = Plain(1), Plain(2)
    assert identity(holding([one], two, one)) != identity(holding([one], two, two))
    assert identity(([one], two, one)) != identity(([one], two, two))


def test_one_thing_twice_is_two_equal_things():
    once = tt.Descent(0.1, 5)
    shared = [tt.Stage("a", once), tt.Stage("b", once)]
    apart = [tt.Stage(name, tt.Descent(0.1, 5)) for name in "ab"]
    assert identity(shared) == identity(apart)
    assert identity(holding(X, X)) == identity(holding(X, X.copy()))


def test_a_thing_that_holds_itself_has_a_name():
    def circle(value):
        one = Plain(value)
        one.me = one
        return one

    assert identity(circle(1)) == identity(circle(1)) != identity(circle(2))


# ---- values


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_values_of_all_kinds_are_told_apart():
    values = [None, True, 1, 1.5, "1", -np.inf, np.nan, 1j, b"1", Colour.RED, Colour.BLUE, (), (1,), ((1,),), {1, 2}]
    values += [{"a": 1}, {"a": 2}, {"b": 1}, X, X.T, X.astype("float32"), X.reshape(4, 3), Plain, Plain(1), np, len]
    values += [range(3), range(1, 3), range(0, 4, 2), "-inf", "nan", "1j", "b'1'", Path("a"), "PosixPath('a')"]
    names = [identity(value) for value in values]
    assert len(set(names)) == len(names)
    assert names == [identity(value) for value in values]


def test_numbers_of_numpy_and_jax_are_numbers():
    assert len({identity(value) for value in (0.1, np.float64(0.1), jnp.asarray(0.1))}) == 1
    assert identity(3) == identity(np.int64(3)) and identity(np.bool_(True)) == identity(True)
    assert identity(X) == identity(jnp.asarray(X)) == identity(np.asfortranarray(X))


def test_the_order_of_a_mapping_makes_no_difference():
    rates = {"first": 1.0, "second": 0.1}
    assert identity(tt.Flow(1.0, rates=rates)) == identity(tt.Flow(1.0, rates=dict(reversed(rates.items()))))


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __call__(self, number):
        return self.value

    def method(self, number):
        return self.value + 1


def test_objects_count_by_what_they_hold_and_how_they_are_called():
    assert identity(Slots(1)) == identity(Slots(1)) != identity(Slots(2))
    assert identity(holding(Slots(1))) != identity(holding(Slots(2)))
    assert identity(Slots(1).method) == identity(Slots(1).method) != identity(Slots(2).method)
    before = identity(Slots(1)), identity(Slots(1).method)
    call, method = Slots.__call__, Slots.method
    try:
        Slots.__call__ = Slots.method = lambda self, number: 7
        assert identity(Slots(1)) != before[0] and identity(Slots(1).method) != before[1]
    finally:
        Slots.__call__, Slots.method = call, method


class Scale:
    factor = 2.0

    def __init__(self, number):
        self.number = number

    @functools.cached_property
    def once(self):
        return self.number

    @property
    def always(self):
        return self.number

    @staticmethod
    def apart(number):
        return number

    def scaled(self):
        return self.factor * self.number


class Narrow(Scale):
    pass


def uses_class(number):
    return Scale(number).scaled()


def once_more(self):
    return self.number + 1


CHANGED = {
    "factor": 3.0,
    "once": functools.cached_property(once_more),
    "always": property(once_more),
    "apart": staticmethod(once_more),
    "scaled": once_more,
    "__init__": once_more,
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_class_counts_by_what_is_written_in_it(monkeypatch, name):
    """By itself, as a base, and where a function of its module calls it."""
    things = Scale, Narrow, uses_class
    before = [identity(thing) for thing in things]
    assert [identity(thing) for thing in things] == before
    monkeypatch.setattr(Scale, name, CHANGED[name])
    assert all(identity(thing) != was for thing, was in zip(things, before, strict=True))


NUMBERS = NDArray[np.float64]  # says that it has an array, and is none


def typed(number):
    return cast(NUMBERS, number)


def test_classes_of_others_count_by_their_name():
    assert described(np.float64) != described(np.float32)
    for kind in (tt.Flow, int):
        assert described(kind) == {"class": f"{kind.__module__}.{kind.__qualname__}"}
    assert identity(typed) == identity(typed)


def test_a_description_survives_a_file():
    for make, changes in CHANGES.values():
        for each in [make(), *(make(**{name: value}) for name, value in changes.items())]:
            plain = each.description if isinstance(each, Asked) else described(each)
            assert digest(json.loads(json.dumps(plain))) == digest(plain)


@dataclasses.dataclass
class Holder:
    value: object


NAMELESS = {
    "an iterator": lambda: iter([1]),
    "a generator": lambda: np.random.default_rng(0),
    "objects in an array": lambda: np.array([None, 1]),
    "in a list": lambda: [1, [iter([1])]],
    "in a dataclass": lambda: Holder(iter([1])),
    "around a function": lambda: holding(iter([1])),
    "a default": lambda: lambda number, kept=iter([1]): next(kept),  # noqa: B008
}


@pytest.mark.parametrize("what", NAMELESS)
def test_what_cannot_be_described_is_refused_with_one_sentence(what):
    with pytest.raises(BadInput, match="so that no run with it can be named") as told:
        identity(NAMELESS[what]())
    assert "\n" not in str(told.value) and str(told.value).endswith(".")


# ---- in another process

ELSEWHERE = """
    import sys
    sys.path[:0] = sys.argv[1:2]
    import test_identity as here
    for make, changes in here.CHANGES.values():
        print(here.name_of(make()), *(here.name_of(make(**{name: value})) for name, value in changes.items()))
    print(here.identity(here.power(2)), here.identity(here.wrapped(2)(here.slower)), here.identity({"a", "b", "c"}))
"""


def test_names_are_the_same_in_another_process():
    """Whatever the order of sets there."""
    words = [sys.executable, "-c", textwrap.dedent(ELSEWHERE), str(Path(__file__).parent)]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert done.returncode == 0, done.stderr
    here = [
        " ".join([name_of(make()), *(name_of(make(**{name: value})) for name, value in changes.items())])
        for make, changes in CHANGES.values()
    ]
    last = f"{identity(power(2))} {identity(wrapped(2)(slower))} {identity({'a', 'b', 'c'})}"
    assert done.stdout.splitlines() == [*here, last]
