"""More than two clusters: threshold 0 against the highest scores, with orthogonal means."""

import xarray as xr

from tutelage.analysis import BAND, GREY, Panel, Series, Sheet, band, line
from tutelage.papers.cluster_moe.beyond.many_clusters import SAMPLES, flown, learned
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

COUNT = "clusters C"


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Routers by the number of clusters in expectation; in full size also SGD for one number (`sgd_...`)."""
    return flown(size) if size == "quick" else with_sgd(flown(size), learned())


def with_sgd(data: xr.Dataset, sgd: xr.Dataset) -> xr.Dataset:
    """Both in one Dataset."""
    about = {f"sgd_{name}": value for name, value in sgd.attrs.items()}
    named = sgd.rename({name: f"sgd_{name}" for name in sgd.data_vars}).rename(seed="sgd_seed")
    return data.merge(named).assign_attrs(data.attrs | about)


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = [
        _part(dataset, "sharp", "experts that see one cluster", "part of the experts"),
        _part(dataset, "pure", "purity of what experts see", "part of the samples"),
        _part(dataset, "active", "active experts per sample", "number"),
    ]
    caption = _caption(dataset)
    if "sgd_error" in dataset:
        panels.append(_errors(dataset))
        caption += _sgd_caption(dataset)
    columns = 2 if len(panels) > 3 else 3
    return Sheet("Beyond the paper: more clusters", tuple(panels), columns=columns, caption=caption)


def _part(dataset: xr.Dataset, name: str, title: str, label: str) -> Panel:
    series: list[Series] = []
    for colour, router in enumerate(dataset["router"].values):
        values = dataset[name].sel(router=router)
        series.append(band(values["clusters"], values, router, colour=colour))
    counts = dataset["clusters"].values
    if name == "pure":
        series.append(line(counts, 2 / counts, "2/C", colour=GREY, dash="dotted"))
    top = 1.3 * max(float(dataset[name].max()), 1.0)
    ends = (float(counts.min()) - 1, float(counts.max()) + 1)
    return Panel(title, COUNT, label, tuple(series), xlim=ends, ylim=(-0.02, top))


def _errors(dataset: xr.Dataset) -> Panel:
    """A point for each router, over the error of saying 0."""
    values = dataset["sgd_error"] / dataset["sgd_zero"]
    points = tuple(
        line(
            dataset["sgd_pure"].sel(router=router), values.sel(router=router), str(router), kind="points", colour=colour
        )
        for colour, router in enumerate(dataset["router"].values)
    )
    about = dataset.attrs
    return Panel(f"error after Phase IV, SGD, C = {about['sgd_clusters']}, d = {about['sgd_dim']}", "purity",
                 "over that of saying 0", points, xlim=(0.3, 1.05), ylim=(0.0, 1.4))  # fmt: skip


def _caption(dataset: xr.Dataset) -> str:
    about, mean = dataset.attrs, dataset.mean("seed")
    told = ". ".join(
        f"C = {count}: sharp {_each(mean['sharp'].sel(clusters=count))}; pure {_each(mean['pure'].sel(clusters=count))}"
        for count in mean["clusters"].values
    )
    routers = ", ".join(map(str, mean["router"].values))
    return (
        f"Orthogonal means at distance 3. Population flow of Phase I and expected router at d = {_many(about['dim'])}, "
        f"{about['experts']} experts, {dataset.sizes['seed']} seeds (median, {BAND}), {SAMPLES} samples of scores a "
        f"cluster. Means of {routers}: {told}. Without an expert: at most {float(mean['idle'].max()):.1g} of the "
        "samples. Purity: the part of the samples seen by an expert that are of the cluster it sees most. With two "
        "clusters whose tasks have opposite signs an expert knows more of one and less of the other. With more "
        "clusters it knows more than the mean expert of several, and threshold 0 sends it all of these, about half of "
        "all (2/C); the highest scores still tell them apart."
    )


def _sgd_caption(dataset: xr.Dataset) -> str:
    about, mean = dataset.attrs, dataset.mean("sgd_seed")
    return (
        f" SGD, C = {about['sgd_clusters']}, d = {about['sgd_dim']}, {dataset.sizes['sgd_seed']} seeds, "
        f"{_many(about['sgd_explore_samples'])} samples of Phase I and "
        f"{_many(about['sgd_samples'] + about['sgd_late_samples'])} of Phase III: sharp {_each(mean['sgd_sharp'])}; "
        f"pure {_each(mean['sgd_pure'])}; idle samples {_each(mean['sgd_idle'])}; experts that know a local and the "
        f"global task {_each(mean['sgd_known'])}; error {_each(mean['sgd_error'])} "
        f"(saying 0: {float(mean['sgd_zero']):.2f}).{_lesson(mean['sgd_error'])}"
    )


def _lesson(errors: xr.DataArray) -> str:
    """Said where it is so."""
    if float(errors.sel(router="top 1")) <= float(errors.min()):
        return ""
    return " Purity is not all: with top 1 experts are the purest, and the error is not the least."


def _each(values: xr.DataArray) -> str:
    return ", ".join(f"{float(value):.2f}" for value in values.values)


def _many(count: int) -> str:
    return f"{count:,}".replace(",", " ")


FIGURE = Figure("beyond_clusters", "More than two clusters", compute, sheet, ours=True)
