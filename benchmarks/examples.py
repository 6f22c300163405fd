"""The claims of examples/*.py at full size, kept in results/examples.json, which docs/examples.md quotes.

python benchmarks/examples.py               # all of them
python benchmarks/examples.py saad_solla    # one; what is recorded of the others stays
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from _measure import RESULTS

from tutelage.bench.machine import about
from tutelage.study.study import Study

EXAMPLES = Path(__file__).parent.parent / "examples"
KEPT = RESULTS / "examples.json"


def recorded(name: str) -> dict[str, Any]:
    """All claims of an example at full size."""
    study, began = Study.named(str(EXAMPLES / f"{name}.py")), time.perf_counter()
    table = study.check(size="full")
    print(table, flush=True)
    took = {"seconds": round(time.perf_counter() - began)}
    return about(f"python benchmarks/examples.py {name}") | took | {"claims": table.records()}


def main(names: list[str]) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    for name in names or sorted(path.stem for path in EXAMPLES.glob("*.py")):
        kept[name] = recorded(name)
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
