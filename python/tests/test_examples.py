"""The programs of examples/python run, and keep what they promise."""

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def run(name, *options):
    done = subprocess.run(
        [sys.executable, FOLDER / name, *options], capture_output=True, text=True, timeout=600, cwd=FOLDER, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("program", sorted(path.name for path in FOLDER.glob("*.py") if path.name not in ("table.py", "tour.py")))
def test_programs(program):
    assert run(program, "--small")


def test_tour(tmp_path):
    page = tmp_path / "page.html"
    text = run("tour.py", "--report", str(page))
    assert text.count("planned") >= 8 and "growing" in text and "tour.py:" in text
    assert page.read_text().startswith("<!doctype html>")


def test_question_4_writes_its_page(tmp_path):
    page = tmp_path / "page.html"
    assert "deep step" not in run("question_4_state_in_batches.py", "--small", "--report", str(page))
    assert "question_4_state_in_batches.py" in page.read_text()


def test_readme_shows_the_first_program_word_for_word():
    readme = (FOLDER.parents[1] / "README.md").read_text()
    shown = readme.split("<!-- peak-and-budget-python: begin.")[1].split("```python\n")[1].split("```")[0]
    assert shown in (FOLDER / "peak_and_budget.py").read_text()
    assert run("peak_and_budget.py").splitlines()[0] == "40.7 KiB"
