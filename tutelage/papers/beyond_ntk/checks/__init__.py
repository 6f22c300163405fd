"""The claims of the paper, by theme: each file holds the checks and the `Claim` objects that use them."""
