"""A mixture of experts that finds the clusters of its inputs, in four phases, and a vanilla network that does not."""
