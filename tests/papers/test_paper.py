"""What every paper has in common."""

import tutelage as tt


def test_experiments_are_shown_as_they_were_asked_for():
    assert repr(tt.papers.both_layers(dim=10)) == "both_layers(dim=10)"
    assert repr(tt.papers.both_layers()) == "both_layers()"
    assert repr(tt.papers.both_layers) == "Study('both_layers')"
