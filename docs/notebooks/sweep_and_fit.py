# %% [markdown]
# # A sweep and a fit
#
# How does a time grow with the dimension? Experts of a mixture recover their first teacher after a time like the
# root of `dim`.

# %%
import tutelage as tt

small = tt.papers.soft_moe(init="orthonormal", students=6, teachers=2)
swept = tt.sweep(small, over={"dim": "1e3..1e6:4"}, measure="recovery_time", seeds=4, processes=1)
print(swept.recovery_time.median("seed").values)

# %% [markdown]
# The law with its interval, by a bootstrap over seeds. A time that had not come when a run ended is *censored*:
# it counts as later than the end, and is not dropped.

# %%
fit = swept.fits(law="power")[None]
print(fit.sentence)

# %% [markdown]
# Is it a root or a logarithm? The comparison says by how much, and in which share of the resamples each law is
# best.

# %%
print(swept.comparisons(laws=("sqrt", "logarithmic"))[None].sentence)
