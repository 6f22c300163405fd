"""A sample of `make fuzz`: mistakes in commands, settings, files and calls work or are refused with one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tutelage
from benchmarks.fuzz import CALLS, Case, nothing_trained, outcome, positional

ROOT = Path(tutelage.__file__).parent.parent
SAMPLE = """
import json, sys
from pathlib import Path
from benchmarks.fuzz import fuzz
print(json.dumps(fuzz(range(20_000, 20_060), Path(sys.argv[1]))))
"""


def test_a_sample_of_mistakes(tmp_path):
    """In a process of its own: here annotations are checked, and would speak first."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-c", SAMPLE, str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == [] and set(found["counts"]) == {"command line", "settings", "files", "Python"}


def test_what_is_no_sentence_is_seen():
    def crash():
        raise KeyError("names")

    assert outcome(Case("Python", "a crash", crash)).startswith("KeyError")


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"load", "sweep", "reproduce"}))
def test_without_a_mistake_a_call_works(name):
    """Else what is refused would be refused for another reason."""
    function, right = CALLS[name]
    with nothing_trained():
        assert outcome(Case("Python", name, lambda: positional(name, function, right))) in ("works", "begun")
