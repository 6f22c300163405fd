"""Studies of many runs: a store of runs on disk, sweeps over settings, and where their cells are computed."""
