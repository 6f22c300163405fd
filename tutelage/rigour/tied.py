"""The loss of tied units, `f(x) = sum_i p_i |w_i| s(w_i.x)`, from that of the plain ones with `a_i = p_i |w_i|`.

    grad_p_i = |w_i| g_i          g the plain gradient in a, G that in w
    grad_w_i = G_i + (p_i.g_i) u_i          u_i = w_i/|w_i|

and the Hessian is `J' H J` with the plain one and the slopes J of a, and what bends a itself:
`d2a_io/dp_io dw_i = u_i` and `d2a_io/dw_i dw_i = p_io (I - u_i u_i')/|w_i|`, each times g_io.
"""

from dataclasses import replace

from flint import arb, arb_mat, arb_series

from tutelage.rigour.balls import CannotEnclose, balls, dot, root
from tutelage.rigour.loss import Loss, State
from tutelage.rigour.networks import Networks
from tutelage.rigour.series import Series, Slope, inner

BOTH = ("first", "second")


class TiedLoss:
    """The loss of a student of which it, its teacher, or both are tied; the same questions as of a `Loss`.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.rigour.networks import networks_of
    >>> from tutelage.rigour.tied import TiedLoss
    >>> relu = tt.TwoLayer("relu", first=[[1.0, 0.0]], tied=True)
    >>> loss = TiedLoss(networks_of(tt.Problem(tt.Gaussian(2), relu, relu), "example", start=[[2, 0]]))
    >>> loss.value(loss.start()).contains(2.25)  # (2 * 2 - 1)^2 E[relu(z)^2] / 2
    True

    ```
    """

    def __init__(self, networks: Networks):
        self.networks, self._tied = networks, networks.tied[0]
        self._plain = Loss(replace(networks, trains=BOTH, tied=(False, False)))
        if networks.tied[1]:
            self._plain.teach(self._untied(State(balls(networks.teacher.first), balls(networks.teacher.second)), True))
        self.target = self._plain.target

    def start(self) -> State:
        """The student's given weights."""
        return self._plain.start()

    def value(self, state: State) -> arb:
        """The loss."""
        return self._plain.value(self._untied(state, self._tied))

    def gradient(self, state: State) -> State:
        """The gradient in both layers; that of a layer that is not trained is 0."""
        slope = self._plain.gradient(self._untied(state, self._tied))
        first, second = slope
        if self._tied:
            rows = []
            for w, p, g, row in zip(*(part.tolist() for part in (*state, second, first)), strict=True):
                over = dot(p, g) / _norm(w)
                rows.append([x + over * y for x, y in zip(row, w, strict=True)])
            norms = [_norm(w) for w in state.first.tolist()]
            first = arb_mat(rows)
            second = arb_mat([[n * x for x in g] for n, g in zip(norms, second.tolist(), strict=True)])
        trains = self.networks.trains
        return State(
            first if "first" in trains else arb_mat(first.nrows(), first.ncols()),
            second if "second" in trains else arb_mat(second.nrows(), second.ncols()),
        )

    def hessian(self, state: State) -> arb_mat:
        """Second derivatives in all weights that are trained: outgoing weights unit by unit, then incoming ones."""
        plain = self._untied(state, self._tied)
        found = self._plain.hessian(plain)
        if self._tied:
            turn, bend = self._chain(state, self._plain.gradient(plain).second)
            found = turn.transpose() * found * turn + bend
        students, columns, outputs = state.first.nrows(), state.first.ncols(), state.second.ncols()
        spans = {
            "second": range(students * outputs),
            "first": range(students * outputs, students * (outputs + columns)),
        }
        kept = [n for layer in ("second", "first") if layer in self.networks.trains for n in spans[layer]]
        rows = found.tolist()
        return arb_mat([[rows[i][j] for j in kept] for i in kept])

    def _chain(self, state: State, slope: arb_mat) -> tuple[arb_mat, arb_mat]:
        """The derivative of plain weights in tied ones, and what their second derivatives add."""
        students, columns, outputs = state.first.nrows(), state.first.ncols(), state.second.ncols()
        begin, size = students * outputs, students * (outputs + columns)
        turn, bend = ([[arb(0)] * size for _ in range(size)] for _ in range(2))
        for i, (w, p, g) in enumerate(zip(*(part.tolist() for part in (*state, slope)), strict=True)):
            norm = _norm(w)
            unit, pull = [x / norm for x in w], dot(p, g) / norm
            for n, x in enumerate(unit):
                place = begin + i * columns + n
                turn[place][place] = arb(1)
                for o in range(outputs):
                    turn[i * outputs + o][place] = p[o] * x
                    bend[i * outputs + o][place] = bend[place][i * outputs + o] = g[o] * x
                for m, y in enumerate(unit):
                    bend[place][begin + i * columns + m] = pull * (int(n == m) - x * y)
            for o in range(outputs):
                turn[i * outputs + o][i * outputs + o] = norm
        return arb_mat(turn), arb_mat(bend)

    def outside(self, state: State) -> arb_mat:
        """Second derivatives along one coordinate that is 0 in all rows: a row and a column for each student."""
        plain = self._untied(state, self._tied)
        found = self._plain.outside(plain).tolist()
        if self._tied:
            slope = self._plain.gradient(plain).second.tolist()
            for i, (w, p, g) in enumerate(zip(*(part.tolist() for part in state), slope, strict=True)):
                found[i][i] += dot(p, g) / _norm(w)
        return arb_mat(found)

    def along(self, first: list[list[Series]], second: list[list[Series]]) -> Slope:
        """The gradient where weights are power series in time, whichever layers learn."""
        if not self._tied:
            return self._plain.along(first, second)
        norms = []
        for w in first:
            square = inner(w, w)
            if not square[0] > 0:
                raise CannotEnclose("A tied row may be zero: there its norm has no derivative.")
            norms.append(square.sqrt())
        slope = self._plain.along(first, [[n * x for x in p] for n, p in zip(norms, second, strict=True)])
        rows = []
        for w, n, p, row, g in zip(first, norms, second, slope.first, slope.second, strict=True):
            over: arb_series = inner(p, g) / n
            rows.append([x + over * y for x, y in zip(row, w, strict=True)])
        return Slope(rows, [[n * x for x in g] for n, g in zip(norms, slope.second, strict=True)])

    def _untied(self, state: State, tied: bool) -> State:
        """The plain network that computes the same."""
        if not tied:
            return state
        pairs = zip(state.first.tolist(), state.second.tolist(), strict=True)
        return State(state.first, arb_mat([[_norm(w, zero=True) * x for x in p] for w, p in pairs]))


def _norm(row: list[arb], *, zero: bool = False) -> arb:
    """The length of a row; only its value may be that of a row that is zero."""
    square = dot(row, row)
    if square > 0:
        return square.sqrt()
    if zero:
        return root(square)
    raise CannotEnclose("A tied row is zero, or may be within its ball: there its norm has no derivative.")
