"""Fresh samples of a clustered problem, each a function of the seed, the phase and its own number only.

So a run may be cut into chunks anywhere, or ask for one sample again, and sees the same data.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt64

from tutelage._errors import BadInput
from tutelage.dynamics.random import key_of, normal_rows, uniforms
from tutelage.problem.clusters import Clustered

# What the random numbers of one sample are for.
_INPUTS, _NOISE, _CLUSTER, _ROUTES = range(4)


class Samples(NamedTuple):
    """`labels` have the problem's noise; `clean` are without."""

    inputs: Float[Array, "sample dim"]
    labels: Float[Array, " sample"]
    clean: Float[Array, " sample"]
    cluster: Int[Array, " sample"]


class Stream(eqx.Module):
    """The samples of one seed in one phase.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.dynamics.streams import stream
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> data = stream(tt.Clustered(antipodal(30, 3.0), tasks), seed=0, phase=1)
    >>> bool((data.samples(6, 2).inputs[0] == data.samples(4, 4).inputs[2]).all())
    True

    ```
    """

    problem: Clustered
    key: UInt64[Array, ""]
    precision: str = eqx.field(static=True, default="float64")

    def samples(self, start: Array | int, count: int) -> Samples:
        """`count` samples from number `start` on.

        Compiled, they are the same to the last bit for any count from 2 up; one sample alone is rounded otherwise.
        """
        rows = self._rows(start, count)
        problem, dtype = self.problem, self.precision
        cluster = self._clusters(rows)
        centres = jnp.asarray(problem.inputs.means) * problem.inputs.radius
        plain = normal_rows(self.key, rows, _INPUTS, problem.inputs.dim, dtype)
        shift = jnp.asarray(centres, dtype)[cluster]
        inputs = jnp.concatenate([plain[:, : centres.shape[1]] + shift, plain[:, centres.shape[1] :]], axis=1)
        clean = problem.teacher.labels(inputs, cluster)
        noise = normal_rows(self.key, rows, _NOISE, 1, dtype)[:, 0]
        return Samples(inputs, clean + jnp.asarray(problem.noise, dtype) * noise, clean, cluster)

    def uniforms(self, start: Array | int, count: int, columns: int) -> Float[Array, "sample column"]:
        """Numbers in (0, 1] for routers, `columns` for each sample, independent of the samples."""
        place = jnp.arange(columns, dtype=jnp.uint64)
        return uniforms(self.key, self._rows(start, count)[:, None], _ROUTES, place[None])

    def _rows(self, start: Array | int, count: int) -> UInt64[Array, " sample"]:
        return jnp.asarray(start, jnp.uint64) + jnp.arange(count, dtype=jnp.uint64)

    def _clusters(self, rows: UInt64[Array, " sample"]) -> Int[Array, " sample"]:
        drawn = uniforms(self.key, rows, _CLUSTER, jnp.zeros(1, jnp.uint64))
        ends = jnp.cumsum(jnp.asarray(self.problem.inputs.weights))[:-1]
        return jnp.searchsorted(ends, drawn, side="right").astype(int)


def stream(problem: Clustered, seed: int, phase: int, precision: str = "float64") -> Stream:
    """The samples of a seed in a phase, from 1 on; those of other phases are independent of them."""
    if seed < 0 or phase < 1:
        raise BadInput(f"stream: seed is {seed} and phase {phase}, but a seed from 0 and a phase from 1 were expected.")
    if precision not in ("float64", "float32"):
        raise BadInput(f'stream: precision is {precision!r}, but "float64" or "float32" was expected.')
    return Stream(problem, jnp.asarray(key_of(seed, phase)), precision)


Term = Callable[[Samples, Float[Array, "sample column"], Float[Array, " sample"]], Any]


def total(term: Term, stream: Stream, start: Array | int, count: Array | int, *, chunk: int, columns: int) -> Any:
    """The sum of `term(samples, uniforms, live)` over `count` samples from number `start` on; for compiled functions.

    `uniforms` has `columns` numbers per sample. `live` is 1, or 0 for rows beyond the last sample, which `term` has to
    leave out. Chunks are added one after the other, so that the same chunk size gives the same bits.
    """

    def part(number: Array) -> Any:
        done = number * chunk
        live = (done + jnp.arange(chunk) < count).astype(float)
        return term(stream.samples(start + done, chunk), stream.uniforms(start + done, chunk, columns), live)

    def add(number: Array, sums: Any) -> Any:
        return jax.tree.map(jnp.add, sums, part(number))

    shapes = jax.eval_shape(part, jnp.array(0))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.fori_loop(0, -(-jnp.asarray(count) // chunk), add, nothing)
