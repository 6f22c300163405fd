"""The claims of a paper at the settings of a stored run: read, or checked when first asked for."""

import json
from collections.abc import Callable
from dataclasses import replace

from tutelage._files import check_folder
from tutelage.papers.paper import Paper, first_seeds
from tutelage.store.fetching import write_claims
from tutelage.trajectory.findings import Table
from tutelage.trajectory.result import Run


def claims_of(paper: Paper, run: Run, progress: Callable[[str, int, int], None] | None = None) -> Table:
    """The checked claims; beside a stored run they are kept, and read as long as the same code would judge them."""
    kept = paper.judged(run).claims
    if kept is not None:
        return kept
    if run.entry is None:
        return _checked(paper, run, progress)
    check_folder(run.entry.folder)  # claims that cannot be kept are not checked: it takes minutes
    code = paper.code
    table = replace(_checked(paper, run, progress), code=code)
    write_claims(run.entry, table)
    return table


def _checked(paper: Paper, run: Run, progress: Callable[[str, int, int], None] | None) -> Table:
    settings = paper.configure(json.loads(run.dataset.attrs["paper_settings"]))
    return paper.check(settings, seeds=first_seeds(run.dataset["seed"].values.tolist()), progress=progress)
