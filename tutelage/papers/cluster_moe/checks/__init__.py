"""The claims of the paper, by theme."""
