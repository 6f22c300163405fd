# %% [markdown]
# # A problem of your own
#
# Two erf teachers, three erf students of which one is too many, as in the soft committee machines of Saad and
# Solla (1995).

# %%
import jax.numpy as jnp

import tutelage as tt

problem = tt.Problem(
    inputs=tt.Gaussian(10_000),
    teacher=tt.TwoLayer("erf", first=[[1.0, 0.0], [0.0, 1.0]]),
    student=tt.TwoLayer("erf", first=tt.GaussianRows(1e-3), width=3, trains=("first",)),
)

# %% [markdown]
# What is recorded, with an observable of one's own: how much of the students lies outside the span of the
# teachers. It is a function of one moment of the run, computed inside the compiled loop.


# %%
def outside(view):
    basis = jnp.linalg.qr(view.teacher.first.T)[0]
    rest = view.weights.first - view.weights.first @ basis @ basis.T
    return jnp.linalg.norm(rest) / jnp.linalg.norm(view.weights.first)


record = tt.Record(100, observables=("loss", "overlap_cos"), own={"outside": outside})

# %% [markdown]
# Gradient flow, until the loss is down.

# %%
run = tt.flow(problem, until=1e3, seeds=4, record=record, stop=tt.Stop(loss=1e-10))
for reason, loss in zip(run.stopped, run.last("loss").values, strict=True):
    print(f"{loss:.2e}", reason.sentence)

# %% [markdown]
# Which student ends where? Seeds stop one by one, so ask for the last value that each has.

# %%
print(run.last("overlap_cos").values.round(2))
print("outside the teachers' span:", run.last("outside").values.round(4))

# %%
run.plot("loss")

# %% [markdown]
# Was it right? Sampled numbers of a run can be computed again by independent routes: `certify=True` of every
# verb.

# %%
assert float(run.last("loss").max()) < 1e-8
