"""A sample of `make fuzz`: mistakes in commands, settings, files and calls work or are refused with one sentence."""

from benchmarks.fuzz import Case, fuzz, outcome

SAMPLE = range(20_000, 20_060)


def test_a_sample_of_mistakes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = fuzz(SAMPLE, tmp_path)
    assert found["wrong"] == [] and set(found["counts"]) == {"command line", "settings", "files", "Python"}


def test_what_is_no_sentence_is_seen():
    def crash():
        raise KeyError("names")

    assert outcome(Case("Python", "a crash", crash)).startswith("KeyError")
