"""The claims of a study at the settings of a stored run: read, or checked when first asked for."""

import json
from collections.abc import Callable
from dataclasses import replace

from tutelage._files import check_folder
from tutelage.store.fetching import write_claims
from tutelage.study.study import Study, first_seeds
from tutelage.trajectory.findings import Table
from tutelage.trajectory.result import Run


def claims_of(study: Study, run: Run, progress: Callable[[str, int, int], None] | None = None) -> Table:
    """The checked claims; beside a stored run they are kept, and read as long as the same code would judge them."""
    kept = study.judged(run).claims
    if kept is not None:  # proofs may have been shipped since
        return replace(kept, rows=tuple(replace(row, settled=study.settled(row.claim.id)) for row in kept.rows))
    if run.entry is None:
        return _checked(study, run, progress)
    check_folder(run.entry.folder)  # claims that cannot be kept are not checked: it takes minutes
    code = study.code
    table = replace(_checked(study, run, progress), code=code)
    write_claims(run.entry, table)
    return table


def _checked(study: Study, run: Run, progress: Callable[[str, int, int], None] | None) -> Table:
    settings = study.configure(json.loads(run.dataset.attrs["paper_settings"]))
    return study.check(settings, seeds=first_seeds(run.dataset["seed"].values.tolist()), progress=progress)
