# %% [markdown]
# # How do students become teachers
#
# ReLU students of orthogonal ReLU teachers. With two teachers or more, small students first collapse onto the
# *mean* direction of the teachers, wait at a saddle whose level is known in closed form, and then part.

# %%
import tutelage as tt

paper = tt.papers.relu_teachers
run = paper(**paper.presets["short"]).descend(seeds=4)
print(run.last("loss").values)
print(run.last("overlap_angle").min("teacher").max("student").values, "largest angle to the nearest teacher, in rad")

# %%
run.plot("loss")

# %% [markdown]
# Its identities, and two that are misprinted.

# %%
print(paper.check(only=("GRAD", "HESS", "RECUR")))
