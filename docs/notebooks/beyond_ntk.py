# %% [markdown]
# # Beyond NTK
#
# Over-parametrised two-layer networks (Li, Ma, Zhang): the loss is a sum over orders of the Hermite expansion.
# Orders 0 and 2 are learned first, order 4 waits on a plateau, and then the rest falls together.

# %%
import tutelage as tt

paper = tt.papers.beyond_ntk
run = paper(**paper.presets["short"]).descend()
orders = 2 * run.loss_order.isel(seed=0).sel(tensor_order=[0, 2, 4, 6])
for time in (0.0, 5.0, 30.0, 150.0):
    print(time, orders.sel(time=time, method="nearest").values)

# %%
run.plot("loss")

# %%
print(paper.check(only=("C1", "C2", "C5")))
