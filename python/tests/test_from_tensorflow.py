"""Every snippet of the Python column of docs/from_tensorflow.md runs."""
import pathlib
import re

import pytest

import tidemark as td

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "from_tensorflow.md"
ROWS = [
    (number, found[1])
    for number, line in enumerate(PAGE.read_text().splitlines(), 1)
    if (found := re.fullmatch(r"\| .* \| `([^`]+)` \| `[^`]+` \|", line))
]
# Snippets whose operands have other shapes than a matrix of four columns.
SHAPES = {"einsum": ([2, 3, 4], [2, 4, 5], None), "conv2d": ([1, 5, 5, 2], None, [3, 3, 2, 4]), "conv_transpose2d": ([1, 3, 4, 4], None, [3, 3, 2, 4]),
          "td.resize": ([1, 5, 5, 2], None, None), "x[0, :, ::2]": ([2, 3, 4], None, None),
          "td.transpose": ([4, 6], None, None), "td.split": ([4, 6], None, None), "td.top_k": ([4, 6], None, None)}


def names(snippet):
    shapes = next((s for part, s in SHAPES.items() if part in snippet), (None, None, None))
    x, y, w = (td.random.normal(s or [4, 4], key=td.random.Key(i)) for i, s in enumerate(shapes))
    model, rows = td.nn.Sequential(td.nn.Dense(4)), td.ones([4, 4])
    if "784" not in snippet:
        model(rows)
    return {
        "td": td, "x": x, "y": y[0] if "update(x, 0" in snippet else y, "w": w, "loss": td.sum(x), "f": lambda e: e * 2, "model": model,
        "v": td.Variable(td.ones([4, 4])), "ids": td.constant([0, 1]), "mask": td.constant([True, False, True, False]),
        "batches": td.data.from_tensor_slices((rows, rows)).batch(2) if "fit" in snippet else td.data.from_tensor_slices((rows, rows)),
    }


@pytest.mark.parametrize("number, snippet", ROWS)
def test_a_snippet_runs(number, snippet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = names(snippet)
    if "v.assign" in snippet and "update" in snippet:
        scope["x"] = td.ones([4])
    limit = td.memory.limit()
    try:
        exec(compile(snippet, f"{PAGE.name}:{number}", "exec"), scope)
    finally:
        td.memory.set_limit(limit)


def test_the_page_has_rows():
    assert len(ROWS) > 80
