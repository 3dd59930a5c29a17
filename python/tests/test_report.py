"""td.report: pages, traces, and what a notebook shows."""

import html
import json
import re

import numpy as np
import pytest

import tidemark as td


@pytest.fixture(scope="module")
def step():
    w = td.Variable(td.zeros((784, 10)))

    @td.function
    def step(x):
        with td.GradientTape() as tape:
            loss = td.mean(td.square(td.matmul(x, w) - 1))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    return step


def documents(page):
    found = re.search(r'<script type="application/json" id="tidemark-data">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def test_pages_of_plans_and_runs(step, tmp_path):
    x = np.ones((64, 784), np.float32)
    plan = step.plan(td.spec((64, 784)))
    result, profile = step.profile(x)
    td.report.write_html(tmp_path / "plan.html", plan)
    td.report.write_html(str(tmp_path / "run.html"), plan, profile)
    td.report.write_html(tmp_path / "two.html", plan, step.plan(td.spec((128, 784))))
    td.report.write_html(tmp_path / "budgets.html", plan, tradeoff=True)
    (one,) = documents((tmp_path / "plan.html").read_text())
    assert one["kind"] == "plan" and one["peak"] == plan.peak
    assert [each["kind"] for each in documents((tmp_path / "run.html").read_text())] == ["plan", "profile"]
    assert [each["kind"] for each in documents((tmp_path / "two.html").read_text())] == ["plan", "plan"]
    assert [each["kind"] for each in documents((tmp_path / "budgets.html").read_text())] == ["plan", "tradeoff"]
    assert "test_report.py" in (tmp_path / "plan.html").read_text()


def test_traces_are_for_perfetto(step, tmp_path):
    _, profile = step.profile(np.ones((64, 784), np.float32))
    td.report.write_trace(tmp_path / "trace.json", profile)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(profile.slices)


def shown(page):
    """The document inside the frame."""
    assert page.startswith('<iframe srcdoc="') and page.count("<iframe") == 1
    inside = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^<>]*></iframe>', page).group(1)
    return html.unescape(inside)


def test_a_notebook_shows_plans_profiles_and_watched_loops(step):
    plan = step.plan(td.spec((64, 784)))
    _, profile = step.profile(np.ones((64, 784), np.float32))
    assert documents(shown(plan._repr_html_()))[0]["peak"] == plan.peak
    assert documents(shown(profile._repr_html_()))[0]["kind"] == "profile"
    report = td.memory.watch(40, lambda: None)
    page = shown(report._repr_html_())
    assert "40 steps: flat" in page and page == td.report.html_page(report)
    assert len(plan._repr_html_()) < 250_000


def test_growth_as_a_page(tmp_path):
    td.report.write_html(tmp_path / "growth.html", td.memory.watch(40, lambda: None))
    assert "40 steps: flat" in (tmp_path / "growth.html").read_text()


def test_a_file_that_cannot_be_written_is_an_error_with_the_line(step):
    with pytest.raises(td.UserError) as caught:
        td.report.write_html("/nowhere/plan.html", step.plan(td.spec((64, 784))))
    assert caught.value.file == __file__ and str(caught.value).startswith("write_html: /nowhere/plan.html")
