# %% [markdown]
# # A first run
#
# A student of four ReLU units learns a linear function of inputs in a billion dimensions. The population loss is
# computed exactly from the overlaps of the weight vectors: no samples are drawn.

# %%
import tutelage as tt

problem = tt.Problem(
    inputs=tt.Gaussian(10**9),
    teacher=tt.TwoLayer("linear", first=[[1.0]]),
    student=tt.TwoLayer("relu", first=tt.GaussianRows(1e-13), second=tt.GaussianEntries(1e-8), width=4),
)
print(problem)

# %% [markdown]
# Eight starts, in one compiled batch.

# %%
run = tt.descend(problem, step=0.1, steps=600, seeds=8, record=120)
print(run)

# %%
print(run.last("loss").values)

# %% [markdown]
# A start learns exactly if both signs occur among `v_i(0) + w_i(0).a/|a|`, which for four units has the
# probability 7/8.

# %%
share = float((run.last("loss") < 1e-6).mean())
print(share, "learned; the law says", 1 - 2 ** (1 - 4))

# %%
run.plot("loss")

# %% [markdown]
# `run.dataset` is an xarray Dataset with named dimensions: everything that was recorded, and what was asked.

# %%
print(dict(run.dataset.sizes))
assert share > 0.5
