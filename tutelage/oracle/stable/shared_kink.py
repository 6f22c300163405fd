"""Loss and gradient of students and teachers with one kinked activation, without cancellation near the optimum.

First for ReLU. Each student joins the group of one teacher `v_l`, with axis `e_l = v_l/|v_l|`. Within a group the
kernel is split as `2 pi K(a, b) = pi a.b + |a||b| (sin t - t cos t)`, with `t` the angle. Between groups its derivative
is expanded about the axis of the other group, `2 pi d_a K(a, b) = J(a, e') b + rem(a, b; e')`: `J` is `2 pi` times the
mixed second derivative of `K` at `(a, e')`, and the remainder is of the order of `angle(b, e')^2`. With signed outgoing
weights `S` (students `V`, teachers `-U`) all that is of order one then adds up, group by group, to the residuals

    R_l = sum_{u in group l} S_u w_u^T,

which are summed exactly and vanish at an optimum, as does every other term by itself. A loner, weak and far from every
axis, is in no group: it is expanded about the axes of all of them, and meets other loners in the plain kernel. These
are identities for any assignment of students to teachers: the assignment decides only the rounding error. (Of two
teachers on one ray the first gets all the students: both residuals stay large, and nothing is gained.)

Any other `lam z + kap |z|` has the kernel `4 kap^2 K + (lam^2 - kap^2) a.b`: its loss and gradient are those of ReLU
and of the sum of all residuals. For `lam = 0` the sign of a row means nothing, and students take the teacher's.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage.oracle.batched_cond import compute_where
from tutelage.oracle.compensated import products, remainders
from tutelage.oracle.geometry import Angles, Rows, angles, direction, from_chords, over, rows, wedge
from tutelage.oracle.kernels.arccosine import ArcKernel
from tutelage.problem.atoms import PiecewiseLinear
from tutelage.problem.networks import Weights


class Members(NamedTuple):
    """Unit students against the axis `e` of their group: `w/|w| = cos e + across = e + offset`, `rest = 1 - cos`.

    All but `cos` keep their digits however small they are.
    """

    cos: Float[Array, " student"]
    rest: Float[Array, " student"]
    across: Float[Array, "student frame"]
    offset: Float[Array, "student frame"]


class Partners(NamedTuple):
    """The angle `t` from each student to the students of its group and, in the last column, to its teacher."""

    turn: Float[Array, "student partner"]
    defect: Float[Array, "student partner"]  # sin t - t cos t
    rest: Float[Array, "student partner"]  # 1 - cos t


class Remainders(NamedTuple):
    """`rem(a_i, w_j; e_j) = |w_j| (own a_i + axial e_j + across z_j)`, with `z` the `across` of the members."""

    own: Float[Array, "row student"]
    axial: Float[Array, "row student"]
    across: Float[Array, "row student"]


def nearest(cos: Float[Array, "student group"], axes: Rows) -> Int[Array, " student"]:
    """The teacher with the largest cosine; one without a direction attracts nobody."""
    return jnp.argmax(jnp.where((axes.norm == 0)[None, :], -2.0, cos), axis=1)


def sides(cos: Float[Array, "student group"]) -> Float[Array, " student"]:
    """The sign that turns each student to the nearest of all lines through teachers."""
    return jnp.where(jnp.max(cos, axis=1) + jnp.min(cos, axis=1) < 0, -1.0, 1.0)


def belongs(
    rest: Float[Array, " student"], strength: Float[Array, " student"], teacher: Float[Array, " student"]
) -> Bool[Array, " student"]:
    """Whether a student is in its group, and not a loner: by angle, or by its share of the teacher.

    Rounding costs `angle^3` times its strength within the group, and its strength squared without.
    """
    return (rest < 1e-3) | (strength >= teacher * rest**1.5)


class Groups:
    """The grouped form for students `weights` of teachers `target`, all with the activation `unit`, for any number of
    outputs."""

    def __init__(self, weights: Weights, target: Weights, unit: PiecewiseLinear):
        self.target, self.unit = target, unit
        self.axes = rows(target.first)
        cos = rows(weights.first).unit @ self.axes.unit.T
        self.sides = sides(cos) if unit.linear == 0 else jnp.ones(len(cos))
        self.weights = Weights(self.sides[:, None] * weights.first, weights.second)
        self.units = rows(self.weights.first)
        self.group = nearest(self.sides[:, None] * cos, self.axes)
        self.axis = self.axes.unit[self.group]
        self.members = _members(self.weights.first, self.units, target.first[self.group], self.axes.norm[self.group])
        self.teachers = (self.axes.norm[:, None] * target.second)[self.group]
        self.member = belongs(self.members.rest, _lengths(self._strength()), _lengths(self.teachers))
        self.own = self.member[:, None] & (self.group[:, None] == jnp.arange(len(target.first))[None, :])
        self.same = self.member[:, None] & self.member[None, :] & (self.group[:, None] == self.group[None, :])
        self.others = self.member[None, :] & ~self.same
        self.residuals = _residuals(self.weights, target, self.own)
        self.partners = _partners(self.members.offset, self.same)

    def _strength(self) -> Float[Array, "student output"]:
        return self.units.norm[:, None] * self.weights.second

    def loss(self) -> Float[Array, ""]:
        """In units of `4 pi` for ReLU, and the linear part."""
        strength = self._strength()
        total = self._within(strength) + self._between(strength) + self._of_loners(strength)
        return self.unit.kink**2 / jnp.pi * total + 0.5 * jnp.sum(self._straight() * self._total())

    def _total(self) -> Float[Array, "output frame"]:
        """The residual of all units together."""
        loners = jnp.where(self.member[:, None], 0.0, self.weights.second)
        return jnp.sum(self.residuals, axis=0) + loners.T @ self.weights.first

    def _straight(self) -> Float[Array, "output frame"]:
        return (self.unit.linear**2 - self.unit.kink**2) * self._total()

    def _within(self, strength: Float[Array, "student output"]) -> Float[Array, ""]:
        defect = self.partners.defect
        bent = jnp.sum(jnp.where(self.same, strength @ strength.T, 0.0) * defect[:, :-1])
        to_teachers = jnp.where(self.member, jnp.sum(strength * self.teachers, axis=1), 0.0)
        return jnp.pi * jnp.sum(self.residuals**2) + bent - 2 * jnp.sum(to_teachers * defect[:, -1])

    def _between(self, strength: Float[Array, "student output"]) -> Float[Array, ""]:
        """Different groups."""
        students = len(strength)
        lines = jnp.concatenate([self.units.unit, self.axes.unit])
        arc = angles(Rows(jnp.concatenate([self.units.norm, self.axes.norm]), lines), self.axes)
        across = lines @ self.members.across.T
        parts = _remainders(arc, across, self.members, self.group)
        about_unit, about_axis = (Remainders(*(part[rows] for part in parts)) for rows in _cut(students))
        residuals = _residual_pairs(self.residuals, self.axes.unit, Angles(*(table[students:] for table in arc)))
        # <rem(e_l, w_j; e_j), R_l^T V_j>, the groups of j left out; R_l^T V_j of all pairs would be the largest array
        heights = jnp.sum(self.residuals * self.axes.unit[:, None, :], axis=2)
        mixed = about_axis.own * (heights @ strength.T)
        mixed = mixed + about_axis.axial * self._met_by_residuals(strength, self.axis)
        mixed = mixed + about_axis.across * self._met_by_residuals(strength, self.members.across)
        # <w_i, rem(w_i/|w_i|, w_j; e_j) - rem(e_i, w_j; e_j)>
        base = Remainders(*(part[self.group] for part in about_axis))
        cos = _signed_cos(arc)[:students, self.group]
        shift = about_unit.own - base.own + base.own * self.members.rest[:, None]
        shift = shift + (about_unit.axial - base.axial) * cos
        shift = shift + (about_unit.across - base.across) * across[:students]
        pairs = jnp.where(self.member[:, None] & self.others, strength @ strength.T, 0.0)
        mixed = jnp.where(self.member[None, :] & ~self.own.T, mixed, 0.0)
        return residuals + 2 * jnp.sum(mixed) + jnp.sum(pairs * shift)

    def _met_by_residuals(
        self, strength: Float[Array, "student output"], direction: Float[Array, "student frame"]
    ) -> Float[Array, "group student"]:
        """`<R_l direction_j, V_j>`."""
        return jnp.sum((self.residuals @ direction.T) * strength.T[None], axis=1)

    def _of_loners(self, strength: Float[Array, "student output"]) -> Float[Array, ""]:
        """Loners with all groups, and with each other."""
        arc = angles(self.units, self.axes)
        met = self._pull_of_residuals(arc).second + self._pull_of_others(arc).second
        met = 2 * met + self._pull_of_loners().second
        return jnp.sum(jnp.where(self.member[:, None], 0.0, strength * met))

    def gradient(self) -> Weights:
        """With `G_i = sum_u S_u d_a K(w_i, w_u)^T`: `grad_{w_i} = G_i^T V_i` and `grad_{V_i} = G_i w_i`."""
        arc = angles(self.units, self.axes)
        parts = [self._pull_of_residuals(arc), self._pull_of_others(arc), self._pull_of_loners()]
        pulls = jax.tree.map(lambda *pieces: sum(pieces), self._pull_of_partners(), *parts)
        scale, straight = 2 * self.unit.kink**2 / jnp.pi, self._straight()
        in_first = self.sides[:, None] * (scale * pulls.first + self.weights.second @ straight)
        in_second = self.units.norm[:, None] * (scale * pulls.second + self.units.unit @ straight.T)
        return Weights(jnp.where(self._undefined()[:, None], jnp.nan, in_first), in_second)

    def _undefined(self) -> Bool[Array, " student"]:
        """At a zero row a kink has no derivative, unless nothing is done with it."""
        out = self.weights.second
        met = jnp.abs(out @ out.T) @ self.units.norm + jnp.abs(out @ self.target.second.T) @ self.axes.norm
        return (self.units.norm == 0) & (met > 0)

    def _pull_of_partners(self) -> Weights:
        """Students of the same group and its teacher, without the part in the residual:

        `sum_b S_b |b| (kappa a - t (bbar - cos t a))`, with `bbar - a` as a difference of offsets.
        """
        out, norm, offset = self.weights.second, self.units.norm, self.members.offset
        teacher = jnp.where(self.member[:, None], -self.teachers, 0.0)
        students = jnp.where(self.same, (out @ out.T) * norm[None, :], 0.0)
        c = jnp.concatenate([students, jnp.sum(out * teacher, axis=1, keepdims=True)], axis=1)
        turn = c * self.partners.turn
        along = jnp.sum(c * self.partners.defect - turn * self.partners.rest, axis=1, keepdims=True)
        in_first = along * self.units.unit + jnp.sum(turn, axis=1, keepdims=True) * offset - turn[:, :-1] @ offset
        defect = self.partners.defect
        in_second = jnp.where(self.same, defect[:, :-1] * norm[None, :], 0.0) @ out + defect[:, -1:] * teacher
        return Weights(in_first, in_second)

    def _pull_of_residuals(self, arc: Angles) -> Weights:
        """`pi R` of the student's own group and `J(a, e_l) R_l` of the others, with

        `J(a, e) r = (pi - t) r + sin t (e.r) a + (e - cos t a) (a.r - cos t e.r)/sin t`.
        """
        unit, axes, out, table = self.units.unit, self.axes.unit, self.weights.second, self.residuals
        cos, sin = _signed_cos(arc), jnp.where(self.own, 0.0, arc.sin)
        far = jnp.where(self.own, jnp.pi, _supplement(arc))
        heights = jnp.sum(table * axes[:, None, :], axis=2)  # of R_l along its own axis
        flat = table.reshape(-1, table.shape[2])
        across = (unit @ flat.T).reshape(len(unit), *heights.shape)
        to_unit, to_axis = jnp.sum(out[:, None, :] * across, axis=2), out @ heights.T
        tilt = over(to_unit - cos * to_axis, sin)
        along = jnp.sum(sin * to_axis - cos * tilt, axis=1, keepdims=True)
        spread = (far[:, :, None] * out[:, None, :]).reshape(len(unit), -1)
        in_first = spread @ flat + along * unit + tilt @ axes
        return Weights(in_first, jnp.sum(far[:, :, None] * across, axis=1) + sin @ heights)

    def _pull_of_others(self, arc: Angles) -> Weights:
        """The remainders of the students of other groups."""
        out, norm, across = self.weights.second, self.units.norm, self.members.across
        reach = self.units.unit @ across.T
        part = _remainders(arc, reach, self.members, self.group)
        c = jnp.where(self.others, (out @ out.T) * norm[None, :], 0.0)
        in_first = jnp.sum(c * part.own, axis=1, keepdims=True) * self.units.unit
        in_first = in_first + (c * part.axial) @ self.axis + (c * part.across) @ across
        value = part.own + part.axial * _signed_cos(arc)[:, self.group] + part.across * reach
        return Weights(in_first, jnp.where(self.others, value * norm[None, :], 0.0) @ out)

    def _pull_of_loners(self) -> Weights:
        """In the plain kernel; most of the time there are none."""
        loners = jnp.where(self.member[:, None], 0.0, self.weights.second)
        none = jax.tree.map(jnp.zeros_like, self.weights)
        pulls: Weights = compute_where(jnp.any(~self.member), _of_loners, none, self.weights, loners)
        return pulls


_PLAIN = ArcKernel(PiecewiseLinear(0.5, 0.5), PiecewiseLinear(0.5, 0.5))


def _of_loners(weights: Weights, loners: Float[Array, "student output"]) -> Weights:
    first = weights.first
    in_first = _PLAIN.pull(weights.second @ loners.T, first, first)
    in_second = _PLAIN.value(rows(first).unit, first) @ loners
    return Weights(2 * jnp.pi * in_first, 2 * jnp.pi * in_second)


def _lengths(a: Float[Array, "p n"]) -> Float[Array, " p"]:
    return jnp.sqrt(jnp.sum(a**2, axis=1))


def _cut(students: int) -> tuple[slice, slice]:
    return slice(None, students), slice(students, None)


def _residuals(
    weights: Weights, target: Weights, own: Bool[Array, "student group"]
) -> Float[Array, "group output frame"]:
    """`R_l = sum_{i in group l} V_i w_i^T - U_l v_l^T`, summed exactly."""
    groups, outputs = target.second.shape
    students = jnp.where(own.T[:, None, :], weights.second.T[None], 0.0)
    teachers = -jnp.eye(groups)[:, None, :] * target.second.T[None]
    left = jnp.concatenate([students, teachers], axis=2).reshape(groups * outputs, -1)
    return products(left, jnp.concatenate([weights.first, target.first])).reshape(groups, outputs, -1)


def _members(
    first: Float[Array, "student frame"],
    units: Rows,
    teacher: Float[Array, "student frame"],
    size: Float[Array, " student"],
) -> Members:
    """What is left of `w` after a multiple of its teacher `v` is exact for any multiple, if the product is.

    The axis `v/|v|` itself is rounded: to subtract a multiple of that would leave 1e-16 of noise across it.
    """
    size = jnp.where(size == 0, 1.0, size)
    axis = teacher / size[:, None]
    share = jnp.sum(first * axis, axis=1) / size
    remains = over(remainders(first, share, teacher), units.norm[:, None])
    along = jnp.sum(remains * axis, axis=1)
    across = remains - along[:, None] * axis
    cos = over(share * size, units.norm) + along
    square = jnp.sum(across**2, axis=1)
    rest = jnp.where(cos > 0, square / (1 + jnp.abs(cos)), 1 - cos)
    return Members(cos, rest, across, across - rest[:, None] * axis)


def _partners(offset: Float[Array, "student frame"], same: Bool[Array, "student student"]) -> Partners:
    """Chords within a group are those of offsets, off by rounding of these; beyond a right angle the angle is that to
    `-b`."""
    length = jnp.sum(offset**2, axis=1)
    between = jnp.maximum(length[:, None] + length[None, :] - 2 * (offset @ offset.T), 0.0)
    between = jnp.where(same & ~jnp.eye(len(offset), dtype=bool), between, 0.0)
    square = jnp.minimum(jnp.concatenate([between, length[:, None]], axis=1), 4.0)
    obtuse = square > 2
    arc = from_chords(jnp.where(obtuse, -1.0, 1.0), jnp.where(obtuse, 4 - square, square))
    turn = jnp.where(obtuse, jnp.pi - arc.near, arc.near)
    return Partners(turn, jnp.where(obtuse, arc.sin + turn * arc.cos, wedge(arc)), square / 2)


def _remainders(
    arc: Angles, reach: Float[Array, "row student"], members: Members, group: Int[Array, " student"]
) -> Remainders:
    """From the angles of rows `a` to the axes and `reach = a.z`. In the plane of `a` and `e` let `n` be the unit vector
    across `e`; `along = n.z`. The angle from `e` to `b`, seen from `a`, is `swing = angle(a, e) - angle(a, b)`.
    """
    cos, sin = _signed_cos(arc)[:, group], arc.sin[:, group]
    square, own = jnp.sum(members.across**2, axis=1)[None, :], members.cos[None, :]
    size = jnp.sqrt(square)
    along = jnp.clip(over(reach, sin), -size, size)
    aside = jnp.maximum(square - along**2, 0.0)  # of z, out of that plane, squared
    level = own * sin - along * cos
    rise = jnp.sqrt(level**2 + aside)
    lift = jnp.where(level > 0, over(aside, rise + level), rise - level)
    x, y = own + lift * sin, along - lift * cos
    # Of the two signs of a half turn, -pi is that of a on the axis and b opposite to it.
    swing = jnp.where((y == 0) & (x < 0), -jnp.pi * jnp.sign(cos), direction(x, y))
    cot = _cot_defect(swing, x, y)
    near = (x > 0) & (jnp.abs(swing) < 1)
    axial = jnp.where(near, along * cot - lift * (cos * (1 + cot) + sin * swing), swing * own - along)
    return Remainders(lift, axial, swing)


def _cot_defect(angle: Array, x: Array, y: Array) -> Array:
    """`angle cot(angle) - 1`, where `cot(angle) = x/y`."""
    square = angle**2
    series = jnp.zeros_like(angle)
    for coefficient in (2 / 93555, 1 / 4725, 2 / 945, 1 / 45, 1 / 3):
        series = coefficient + square * series
    return jnp.where(jnp.abs(angle) < 0.1, -square * series, over(angle * x, y) - 1)


def _residual_pairs(
    residuals: Float[Array, "group output frame"], axes: Float[Array, "group frame"], arc: Angles
) -> Float[Array, ""]:
    """`sum_{l != l'} <R_l, J(e_l, e_l') R_l'>`."""
    off = ~jnp.eye(len(axes), dtype=bool)
    cos, sin = _signed_cos(arc)[..., None], jnp.where(off, arc.sin, 0.0)[..., None]
    heights = jnp.einsum("lrn,mn->lmr", residuals, axes)
    own = jnp.einsum("llr->lr", heights)
    tilts = (heights - cos * own[:, None]) * (jnp.swapaxes(heights, 0, 1) - cos * own[None])
    straight = jnp.where(off, _supplement(arc), 0.0) * jnp.einsum("lrn,mrn->lm", residuals, residuals)
    return jnp.sum(straight) + jnp.sum(sin * own[:, None] * own[None] + over(tilts, sin))


def _signed_cos(arc: Angles) -> Float[Array, "p q"]:
    return arc.sign * arc.cos


def _supplement(arc: Angles) -> Float[Array, "p q"]:
    """`pi` minus the angle."""
    return jnp.where(arc.sign > 0, jnp.pi - arc.near, arc.near)
