"""Cells of a sweep on a Dask cluster: any scheduler that can be reached, however its workers were started."""

import gc
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tutelage._errors import BadInput
from tutelage._interrupt import stop_asked
from tutelage.study.cells import Cell
from tutelage.study.workers import PAUSE, Outcome, packed, work

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 10.0  # seconds until a scheduler that does not answer is given up
BATCH = 500  # cells that are sent at once: workers begin while the rest is on its way


def connect(address: str) -> "Client":
    """A client of the scheduler at an address such as `tcp://10.0.0.1:8786`."""
    try:
        from distributed import Client
    except ImportError:
        raise BadInput("A cluster needs dask.distributed; install tutelage with its extra `cluster`.") from None
    try:
        return Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error)
    # What is left of the client ends now. If the collector came upon it while another one starts, both would hang.
    gc.collect()
    raise BadInput(
        f"No Dask scheduler answers at {address!r} ({reason}); start one with `dask scheduler`, or correct the address."
    )


def on_cluster(cells: Mapping[str, Cell], client: "Client") -> Generator[tuple[str, Outcome], None, None]:
    """Cells as tasks of a Dask cluster. A worker that dies loses nothing: its cells are given to another.

    Workers share no disk with us, so that cells there have no checkpoints; a result is a few hundred numbers.
    """
    from distributed import as_completed

    payloads = [packed(replace(cell, checkpoint=None)) for cell in cells.values()]
    keys = [f"tutelage-{name}" for name in cells]
    submitted = client.map(work, payloads, key=keys, pure=False, batch_size=BATCH)
    names = dict(zip(submitted, cells, strict=True))
    coming = as_completed(submitted, loop=client.loop)
    del submitted  # what has come is let go, here and on the cluster
    try:
        while not coming.is_empty() and not stop_asked():
            if not coming.has_ready():
                time.sleep(PAUSE)
                continue
            batch = coming.next_batch(block=False)
            for future, outcome in zip(batch, _outcomes(client, batch), strict=True):
                yield names.pop(future), outcome
    finally:
        if names and client.status == "running":
            client.cancel(list(names))


def _outcomes(client: "Client", batch: list[Any]) -> list[Outcome]:
    """Fetched together: one by one, each would take a round to the scheduler and back."""
    try:
        outcomes: list[Outcome] = client.gather(batch)
        return outcomes
    except Exception:  # of one of them
        return [_outcome(future) for future in batch]


def _outcome(future: Any) -> Outcome:
    """Its result; a cell that killed several workers is an error of its own."""
    try:
        outcome: Outcome = future.result()
        return outcome
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
