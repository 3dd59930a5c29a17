"""Tensors: values, operators, errors and the lines they name."""
import pytest

import tidemark as td


def test_operators_compute():
    x = td.constant(2.0)
    assert (x + 1).tolist() == 3.0
    assert (1 - x).tolist() == -1.0


def test_errors_name_the_line_of_the_caller():
    with pytest.raises(td.UserError) as caught:
        td.add(td.constant(True), "text")
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, td.Error)
    assert caught.value.file == __file__
    assert caught.value.function == "test_errors_name_the_line_of_the_caller"
