"""The short form of `make laws`: a few cases, and faults that must be seen with as few replicas."""

import pytest

from benchmarks import laws

COUNT = 4000
# Momentum, label noise and 1e9 dimensions; a schedule at the frame.
CASES = [case for case in laws.CASES if case.momentum and case.noise and case.beyond == laws.FAR and case.batch == 8]
CASES += [case for case in laws.CASES if case.schedule and case.name == "abs"]


def test_every_level_is_in_the_suite():
    cases = laws.CASES
    assert {case.name for case in cases} == set(laws.NUMPY)
    assert {case.beyond for case in cases} >= {0, 1, laws.FAR} and {case.batch for case in cases} >= {1, 8, 64}
    for one in (0, 1, laws.FAR):
        here = [case for case in cases if case.beyond == one]
        assert all(len({bool(getattr(case, part)) for case in here}) == 2 for part in ("noise", "momentum", "schedule"))
    assert len({case.title for case in cases}) == len(cases)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_law(case):
    found = laws.compared(case, COUNT)
    assert min(found) * len(found) > laws.LEVEL


@pytest.mark.parametrize("name", ["labels without noise", "a schedule that is one ahead"])
def test_a_planted_fault_is_seen(monkeypatch, name):
    plant = laws.PLANTS[name]
    [case] = [case for case in CASES if case in plant.cases][:1]
    monkeypatch.setitem(laws.PLANTS, name, laws.Plant((case,), plant.patch, plant.asked))
    assert laws.planted(name, 1000, COUNT)["seen"]
