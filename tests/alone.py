"""What a wheel must be able to do where nothing else is: `make wheel-test` runs this in an environment of its own.

It imports nothing of tutelage by itself: it looks into the wheel, and runs commands in a folder far from the source.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def missing(wheel: Path) -> list[str]:
    """Files of the package that the wheel lacks: every source, stub, style sheet and mark of types counts."""
    held = set(zipfile.ZipFile(wheel).namelist())
    files = (file for file in (ROOT / "tutelage").rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return sorted(name for file in files if (name := file.relative_to(ROOT).as_posix()) not in held)


def said(*command: str | Path, folder: str) -> str:
    """What a command prints in a folder; it must succeed."""
    ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=ours, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def main(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    if lacking := missing(wheel):
        sys.exit(f"{wheel.name} lacks {', '.join(lacking)}")
    (readme,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    with tempfile.TemporaryDirectory() as away:
        where = said(sys.executable, "-c", "import tutelage; print(tutelage.__file__)", folder=away).strip()
        if Path(where).is_relative_to(ROOT / "tutelage"):
            sys.exit(f"{where} is the source, not the wheel.")
        assert "both_layers" in said(BIN / "tutelage", "papers", folder=away)
        assert "checks agree" in said(sys.executable, "-c", readme, folder=away)
        told = said(BIN / "tutelage", "run", "both_layers", "--out", "run.nc", "--figure", "run.png", folder=away)
        assert "loss" in told and (Path(away) / "run.nc").is_file() and (Path(away) / "run.png").is_file()
        said(BIN / "tutelage", "reproduce", "both_layers/fig1", "--out", "report", folder=away)
        assert "<style" in (Path(away) / "report" / "report.html").read_text(encoding="utf-8")
    print(f"{wheel.name}: complete, and works alone.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
