# %% [markdown]
# # When Both Layers Learn
#
# Training dynamics of representing linear models via ReLU networks (Tinaz, Xie, Soltanolkotabi). Both layers of a
# ReLU network learn a linear target: hidden vectors align with the target's line, both layers grow, and the loss
# falls at a linear rate.

# %%
import tutelage as tt

run = tt.papers.both_layers(dim=10**9).descend(seeds=4)
for phase in run.phases[:3]:
    print(
        f"{phase.name}: to update {phase.end:.0f}",
        "" if phase.predicted is None else f"(predicted {phase.predicted:.0f})",
    )

# %%
run.plot("loss")

# %% [markdown]
# Some statements of the paper, measured. The page *Corrections* has those that came out otherwise, with what is
# true instead.

# %%
print(tt.papers.both_layers().check(only=("BL05", "BL08", "BL43", "BL45")))
