# %% [markdown]
# # Clusters and experts
#
# A mixture of experts detects the clusters of its inputs (Kawata, Matsutani, Kinoshita, Nishikawa, Suzuki):
# experts explore, a router finds out who knows which cluster, and experts then learn what they are sent. Here in
# expectation, at a dimension of a billion.

# %%
import tutelage as tt

run = tt.papers.cluster_moe(dim=10**9).flow(seeds=1)
print(run.summary()["sharp_experts"], "of 8 experts see one cluster only")

# %% [markdown]
# Three of its lemmas as printed, and as they hold.

# %%
print(tt.papers.cluster_moe().check(only=("CM-02", "CM-ALPHA", "CM-16")))
