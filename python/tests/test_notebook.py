"""The notebook of examples/python runs in a kernel, and shows pages, a summary and a bar."""

import pathlib

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "memory.ipynb"


def executed():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html_of(cell):
    return "".join(output.data.get("text/html", "") for output in cell.outputs if "data" in output)


def test_the_notebook_runs_and_shows():
    cells = executed()
    by_source = {cell.source.splitlines()[-1]: cell for cell in cells}
    for name in ("plan", "profile", "report"):
        assert html_of(by_source[name]).startswith('<iframe srcdoc="'), name
    assert "a call needs" in html_of(by_source["model"])
    fit = by_source["history"]
    text = "".join(output.get("text", "") for output in fit.outputs)
    assert text.count("epoch ") >= 5, "the lines of the epochs are in the notebook"
    assert any(output.output_type == "display_data" for output in fit.outputs), "the bar is an output of its own"


def test_the_notebook_is_stored_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
