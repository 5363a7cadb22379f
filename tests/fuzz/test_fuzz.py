"""A few inputs for every fuzz target; ``make fuzz`` runs many more."""

import pytest
from hypothesis import HealthCheck, given, settings

from fuzz_targets import TARGETS

FEW = {"tagger": 25}


@pytest.mark.parametrize("name", TARGETS)
def test_any_input_gives_a_result_or_an_error_of_one_line(name):
    target = TARGETS[name]

    @settings(
        max_examples=FEW.get(name, 300),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def run(data):
        target.run(data)

    run()
