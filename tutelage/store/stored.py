"""A run read from a store: its Dataset, and what was found out about it."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import xarray as xr

from tutelage._errors import BadInput
from tutelage._files import read_json, write_json, writing
from tutelage.analysis.claims import Table
from tutelage.store.spec import RunSpec
from tutelage.store.store import Entry
from tutelage.trajectory.dataset import load
from tutelage.trajectory.result import Recorded


@dataclass(frozen=True)
class StoredRun(Recorded):
    """A finished run of a store. The variables of its Dataset are attributes: `run.loss`, `run.overlap`."""

    entry: Entry
    dataset: xr.Dataset
    computed: bool = False
    """Whether it was computed just now, and not only read."""

    @classmethod
    def read(cls, entry: Entry) -> "StoredRun":
        """Read it; what is not finished, or damaged, is refused with a sentence and left alone."""
        if entry.trouble:
            raise BadInput(entry.trouble)
        if entry.kind != "run":
            raise BadInput(f"{entry.id} is a sweep, but a run was expected.")
        if entry.state != "finished":
            raise BadInput(f"The run {entry.id} is {entry.state}; ask for it again with `tutelage run` to finish it.")
        try:
            return cls(entry, load(entry.result))
        except BadInput as error:
            raise BadInput(f"{error} It was left alone; `tutelage rm {entry.id}` removes the run.") from None

    @property
    def spec(self) -> RunSpec:
        return RunSpec.read(self.entry.spec)

    @property
    def phases(self) -> Any:
        """The phases that were detected."""
        return json.loads(self.dataset.attrs.get("phases", "[]"))

    @property
    def certificate(self) -> list[dict[str, Any]] | None:
        """The records of its certificate; None if it has none."""
        found = self.dataset.attrs.get("certificate")
        return None if found is None else json.loads(found)

    def summary(self) -> dict[str, Any]:
        """A few plain numbers, ready for JSON."""
        where = {"id": self.entry.id, "folder": str(self.entry.folder), "read_from_store": not self.computed}
        return where | self.entry.summary

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        """Records of the paper's claims at the settings of this run: read, or checked when first asked for."""
        return self.checked()

    def checked(self, progress: Any = None) -> list[dict[str, Any]]:
        """The same, with progress."""
        path = self.entry.folder / "claims.json"
        if not path.is_file():
            from tutelage import papers

            paper = papers.get(self.spec.paper)
            table = paper.check(paper.configure(self.spec.settings), seeds=len(self.spec.seeds), progress=progress)
            with writing(path):
                write_json(table.records(), path)
        records = read_json(path)
        try:
            Table.read(records)
        except (TypeError, KeyError, ValueError):
            raise BadInput(f"{path} holds no checked claims; it was left alone: mend it or move it away.") from None
        return records
