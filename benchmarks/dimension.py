"""The same experiment at d = 100 and at d = 1e9: 64 seeds of both_layers, by descent and by flow."""

# isort: off
from _measure import interleaved, write  # first, because it fixes the number of threads

import tutelage as tt
# isort: on

DIMS = (100, 10**9)


def main() -> None:
    results = {}
    for verb in ("descend", "flow"):
        runs = {}
        for dim in DIMS:
            experiment = tt.papers.both_layers(dim=dim)
            runs[f"{dim:g}"] = lambda experiment=experiment, verb=verb: getattr(experiment, verb)(seeds=64)
        seconds = interleaved(runs)
        results[verb] = {"seconds": seconds, "ratio": seconds["1e+09"] / seconds["100"]}
    write("dimension", {"setting": "both_layers, 64 seeds, default settings"} | results)


if __name__ == "__main__":
    main()
