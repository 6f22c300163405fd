"""Atlas of stationary points: landscapes that can be solved by hand, symmetries by brute force, and what is kept."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.analysis import atlas as module
from tutelage.analysis.atlas.proved import proved, told
from tutelage.analysis.atlas.symmetry import Shape, isotropy, same
from tutelage.problem.activations import polynomial
from tutelage.problem.networks import host_weights

pytestmark = pytest.mark.usefixtures("quickly_compiled")


def squares(first, dim=3):
    """`(w.x)^2` learns `(v.x)^2`: the loss is `1/2 (3|w|^4 + 3 - 2|w|^2 - 4 (w.v)^2)`."""
    square = polynomial([0.0, 0.0, 1.0])
    student = tt.TwoLayer(square, first=[first], trains=("first",))
    return tt.Problem(tt.Gaussian(dim), tt.TwoLayer(square, first=[[1.0]]), student)


def relu(k, first, trains=("first",), **options):
    student = tt.TwoLayer("relu", first=first, trains=trains, **options)
    return tt.Problem(tt.Gaussian(k), tt.TwoLayer("relu", first=np.eye(k)), student)


def test_one_square_has_three_points_in_all_dimensions():
    """By hand: w = v and w = -v, w = 0 (index dim), and |w|^2 = 1/3 orthogonal to v, with index 1, where the dim - 2
    turns around v are flat."""
    dim, places = 10**6, []
    for first in ((-0.9, 0.1), (0.03, 0.55), (0.01, 0.01)):
        found = tt.atlas(squares(first, dim), starts=1, by="newton")
        assert found.unresolved == 0 and found.places[0].gradient <= 1e-13
        places.append(found.places[0])
    best, side, origin = places
    assert np.allclose([place.loss for place in places], [0, 4 / 3, 1.5], atol=1e-14)
    assert best.lowest and best.title == "global minimum" and (best.index, best.zero) == (0, 0)
    assert (side.index, side.zero, side.moves, side.valley) == (1, dim - 2, dim - 2, 0)
    assert abs(side.least + 4) < 1e-9 and abs(float(jnp.sum(side.weights.first**2)) - 1 / 3) < 1e-12
    assert (origin.index, origin.zero) == (dim, 0) and origin.title == "strict saddle"


def test_signs_are_merged_for_even_units_and_kept_for_others():
    ends = [tt.Weights(first=jnp.array([[sign, 0.0]]), second=jnp.ones((1, 1))) for sign in (1.0, -1.0)]
    target = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    even, plain = ([Shape.of(end, target, (sign, sign)) for end in ends] for sign in (1, 0))
    assert same(*even) and not same(*plain)
    # An odd unit takes its outgoing weight along.
    turned = tt.Weights(first=-ends[0].first, second=-ends[0].second)
    odd = [Shape.of(end, target, (-1, -1)) for end in (ends[0], turned, ends[1])]
    assert same(odd[0], odd[1]) and not same(odd[0], odd[2])


def brute(first, second, target, other=None):
    """Pairs of permutations that map a student on another (itself) and leave the teachers as they are, one by one."""
    other = first if other is None else other
    count, gram = 0, target @ target.T
    for teachers in itertools.permutations(range(len(target))):
        if not np.allclose(gram[np.ix_(teachers, teachers)], gram):
            continue
        for students in map(list, itertools.permutations(range(len(first)))):
            moved, weights = other[students], second[students]
            same_overlap = np.allclose(moved @ target[list(teachers)].T, first @ target.T)
            count += same_overlap and np.allclose(moved @ moved.T, first @ first.T) and np.allclose(weights, second)
    return count


@pytest.mark.parametrize("seed", range(12))
def test_isotropy_is_that_of_all_permutations(seed):
    draw = np.random.default_rng(seed)
    k = 4
    # Few different entries, so that there are exchanges; teachers of two lengths, so that not all are allowed.
    first = draw.integers(0, 2, (k, k)) + 3.0 * np.eye(k) * draw.integers(0, 2)
    target = np.diag([1.0, 1.0, 1.0, draw.choice([1.0, 2.0])])
    second = draw.choice([1.0, -1.0], (k, 1)) if seed % 3 == 0 else np.ones((k, 1))
    taught = host_weights(target, np.ones((k, 1)))
    shape = Shape.of(host_weights(first, second), taught, (0, 0))
    assert isotropy(shape).order == brute(first, second, target)
    rows, columns = draw.permutation(k), [*draw.permutation(k - 1), k - 1]
    for other in (first[rows][:, columns], first + np.eye(k)[draw.integers(k)]):
        again = Shape.of(host_weights(other, second), taught, (0, 0))
        assert same(shape, again) is bool(brute(first, second, target, other))


def spurious(k):
    """Near the spurious minimum of k = m ReLU units: all but one student near their teachers, one far away."""
    first = 0.99 * np.eye(k) - 0.06
    first[-1] = 0.36
    first[:-1, -1] = 0.3
    first[-1, -1] = -0.8
    return first


def loss_by_hand(first):
    """The same loss from the arc-cosine formula, in NumPy."""
    every = np.concatenate([first, np.eye(first.shape[1])])
    signs = np.repeat([1.0, -1.0], [len(first), first.shape[1]])
    norm = np.linalg.norm(every, axis=1)
    cosine = np.clip(every @ every.T / np.outer(norm, norm), -1, 1)
    angle = np.arccos(cosine)
    kernel = np.outer(norm, norm) * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
    return signs @ kernel @ signs / 2


def test_the_spurious_minimum_of_six_relu_units():
    """Found by Safran and Shamir (2018); its symmetry is that of five of the six teachers (Arjevani and Field 2020)."""
    found = tt.atlas(relu(6, spurious(6)), starts=1)
    [place] = found.places
    assert place.spurious and (place.index, place.zero) == (0, 0)
    assert place.isotropy.name == "S5" and place.isotropy.parts == "5+1" and found.spurious == 1.0
    first = np.asarray(place.weights.first)
    assert abs(loss_by_hand(first) - place.loss) < 1e-14 and abs(place.loss - 0.0250806) < 1e-7
    # Central differences: h^2 of the third derivative for the gradient, h^2 and 1e-16/h^2 for the Hessian.
    h, axes = 1e-4, np.eye(36).reshape(36, 6, 6)
    slopes = [(loss_by_hand(first + h * axis) - loss_by_hand(first - h * axis)) / (2 * h) for axis in axes]
    assert np.max(np.abs(slopes)) < 1e-7 and place.gradient <= 1e-13
    bends = np.array([[_second(first, h, a, b) for a in axes] for b in axes])
    assert np.max(np.abs(np.linalg.eigvalsh(bends) - place.eigenvalues)) < 1e-5 and place.least > 1e-3


def test_points_are_proved_on_request():
    """The spurious minimum is; that of another loss, or one that is not stationary, is told as what it is."""
    problem = relu(6, spurious(6))
    found = tt.atlas(problem, starts=1, prove=True)
    [place] = found.places
    assert place.proved.strict_minimum
    assert abs(float(place.proved.loss.mid()) - place.loss) < 1e-15 and place.proved.least < place.least
    assert "proved" in str(found) and "strict minimum" in str(found)
    assert "proved" not in str(replace(found, places=(replace(place, proved=None),)))
    weights, target = place.weights, found.target
    assert proved(problem, target, weights, 0.026) == "Another point was found nearby."
    moved = tt.Weights(weights.first + 0.3, weights.second)
    assert told(proved(problem, target, moved, place.loss)) == "no"


def _second(first, h, a, b):
    signs = itertools.product((1, -1), repeat=2)
    return sum(s * t * loss_by_hand(first + h * (s * a + t * b)) for s, t in signs) / (4 * h * h)


def test_scale_that_goes_from_layer_to_layer_is_no_valley():
    """Both layers train: each ReLU unit has one flat direction, which its symmetry explains."""
    student = tt.GaussianRows(0.7)
    found = tt.atlas(relu(2, student, ("first", "second"), width=2, second=tt.GaussianEntries(1.0)), starts=12)
    best = found.places[0]
    assert best.lowest and (best.zero, best.moves, best.valley) == (2, 2, 0)
    assert sum(place.count for place in found.places if place.lowest) == best.count


def test_a_valley_is_one_place():
    """Two students share one linear teacher: the minima are a family, w1 + w2 = v, and one row of the table."""
    student = tt.TwoLayer("linear", first=tt.GaussianRows(0.5), width=2, trains=("first",))
    problem = tt.Problem(tt.Gaussian(3), tt.TwoLayer("linear", first=[[1.0]]), student)
    found = tt.atlas(problem, starts=10)
    [place] = found.places
    assert place.count == 10 and place.zero == 3 and place.valley > 0 and "of a valley" in str(found)


def test_frequencies_and_what_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 8)
    problem = relu(2, tt.GaussianRows(0.7), width=2)
    few = tt.atlas(problem, starts=8, store=tmp_path)
    before = {entry.id for entry in tt.Store(tmp_path).entries()}
    more = tt.atlas(problem, starts=16, store=tmp_path)
    kept = {entry.id for entry in tt.Store(tmp_path).entries()}
    assert before < kept and len(kept - before) < 2 * len(before) + 1
    assert more.starts == 16 and sum(p.count for p in more.places) + more.unresolved == 16
    assert sum(p.count for p in few.places) + few.unresolved == 8
    assert str(tt.atlas(problem, starts=16, store=tmp_path)) == str(more)
    assert {entry.id for entry in tt.Store(tmp_path).entries()} == kept


def test_the_figure_shows_every_place():
    found = tt.atlas(relu(2, tt.GaussianRows(0.7), width=2), starts=8)
    often, bends, portrait = found.sheet().panels
    assert sum(len(series.x) for series in often.series) == len(found.places) == len(bends.series)
    assert portrait.fields[0].values.shape == (2, 2) and np.allclose(portrait.fields[0].values, np.eye(2), atol=1e-12)
    assert len(found.plot().axes) >= 3 and found.sentence in str(found)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (relu(2, np.eye(2), trains=()), "trains no layer"),
        (
            tt.Problem(
                tt.Gaussian(2),
                tt.TwoLayer("relu", first=np.eye(2)),
                tt.TwoLayer("relu", first=np.eye(2), tied=True),
            ),
            "mixture or tied",
        ),
    ],
)
def test_what_has_no_atlas_is_refused(problem, words):
    with pytest.raises(tt.BadInput, match=words):
        tt.atlas(problem, starts=2)


@pytest.mark.parametrize("wrong", [{"starts": 0}, {"seed": -1}, {"until": 0.0}, {"by": "luck"}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(tt.BadInput):
        tt.atlas(squares((1.0,)), **wrong)
