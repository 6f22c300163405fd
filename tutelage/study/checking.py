"""The claims of a paper at the settings of a stored run: read, or checked when first asked for."""

import json
from collections.abc import Callable

from tutelage._files import check_folder
from tutelage.papers.paper import Paper, first_seeds
from tutelage.store.fetching import write_claims
from tutelage.trajectory.findings import Table
from tutelage.trajectory.result import Run


def claims_of(paper: Paper, run: Run, progress: Callable[[str, int, int], None] | None = None) -> Table:
    """The checked claims; beside a stored run they are kept."""
    if run.claims is not None:
        return run.claims
    if run.entry is not None:
        check_folder(run.entry.folder)  # claims that cannot be kept are not checked: it takes minutes
    settings = paper.configure(json.loads(run.dataset.attrs["paper_settings"]))
    table = paper.check(settings, seeds=first_seeds(run.dataset["seed"].values.tolist()), progress=progress)
    if run.entry is not None:
        write_claims(run.entry, table)
    return table
