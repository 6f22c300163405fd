"""Several Datasets in one, and out of it again: a figure is one file, however many runs it shows."""

import xarray as xr


def combined(**parts: xr.Dataset) -> xr.Dataset:
    """Several Datasets as one: names and dims of each get its keyword as a prefix; attrs are those of the first."""
    renamed = []
    for prefix, part in parts.items():
        names = {
            name: f"{prefix}_{name}" for name in [*part.variables, *(d for d in part.dims if d not in part.variables)]
        }
        renamed.append(part.rename(names).drop_attrs(deep=False))
    first = next(iter(parts.values()))
    return xr.merge(renamed, combine_attrs="drop").assign_attrs(first.attrs)


def part(dataset: xr.Dataset, prefix: str) -> xr.Dataset:
    """One part of a combined Dataset, under its own names."""
    wanted = [name for name in dataset.variables if str(name).startswith(f"{prefix}_")]
    chosen = dataset[[name for name in wanted if name in dataset.data_vars]]
    return chosen.rename(
        {
            n: str(n).removeprefix(f"{prefix}_")
            for n in [*chosen.variables, *chosen.dims]
            if n in chosen.dims or n in chosen.variables
        }
    )
