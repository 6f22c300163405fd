# %% [markdown]
# # Guided by the experts
#
# A soft-routed mixture of experts (Liao, Kyrillidis): from orthonormal starts teachers are recovered one after
# another, and each router follows its expert.

# %%
import tutelage as tt

paper = tt.papers.soft_moe
run = paper(**paper.presets["short"]).flow()
print(run.expert_time.min("student").values, "when each teacher is first recovered")

# %%
run.plot("loss")

# %% [markdown]
# The force between two students that have learned nothing is of second order in their overlap, not of third. It
# makes students of a Gaussian start cancel each other in pairs.

# %%
print(paper.check(only=("SM-L7", "SM-H")))
