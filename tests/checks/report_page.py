"""The pages of reports in headless Chromium: what they show is what the JSON says, with 20,000 tensors too.

usage: report_page.py TIDEMARK REPORT_PAGES FOLDER

The pages, their screenshots (light and dark) and one of them as printed stay in FOLDER for people to look at. Without
Chromium the exit code is 77: skipped.
"""

import html
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND, PAGES, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def browse(page, place, *options):
    # Without its sandbox: root in a container has none, and the page is ours.
    with tempfile.TemporaryDirectory() as profile:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1440,1700", "--virtual-time-budget=20000",
                   *options, f"file://{FOLDER / page}#{place}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


def self_test(page):
    dom = browse(page, "selftest", "--dump-dom")
    error = re.search(r'<pre class="error">(.*?)</pre>', dom)
    if error:
        raise AssertionError(f"{page}: {error.group(1)}")
    return json.loads(html.unescape(re.search(r'<pre id="selftest">(.*?)</pre>', dom, re.S).group(1)))


def bytes_text(count):
    units = ["B", "KiB", "MiB", "GiB"]
    value, unit = count, 0
    while unit < 3 and abs(value) >= 1024:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {units[unit]}"


def load(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def large_plan(tensors, steps):
    """A plan nobody compiled: every tensor on a shelf of its own height, freed in the order they are made."""
    draw = random.Random(5)
    buffers, shelves, in_use = [], [], [0] * steps
    for i in range(tensors):
        begin = i * steps // tensors
        end = min(steps, begin + 1 + int(draw.expovariate(1 / (30 if draw.random() < 0.9 else 3000))))
        size = 64 * draw.randint(1, 4096)
        shelf = next((k for k, free in enumerate(shelves) if free <= begin), len(shelves))
        if shelf == len(shelves):
            shelves.append(0)
        shelves[shelf] = end
        for step in range(begin, end):
            in_use[step] += size
        kind = draw.choice(["temporaries", "temporaries", "saved", "workspace"])
        buffers.append({"name": draw.choice(["matmul", "softmax", "add"]), "type": f"f32[{size // 4}]", "class": kind, "bytes": size,
                        "offset": shelf * 64 * 4096, "begin": begin, "end": end, "line": f"model.cc:{40 + begin % 300}",
                        "layer": f"block {begin * 24 // steps}/mlp", "reason": f"{kind}: made by it"})
    peak = len(shelves) * 64 * 4096
    timeline = [{"step": "matmul", "line": f"model.cc:{40 + i % 300}", "layer": f"block {i * 24 // steps}/mlp", "in_use": in_use[i]}
                for i in range(steps)]
    return {"version": 1, "kind": "plan", "function": "large", "peak": peak, "arena": peak, "load": max(in_use), "threads": 2,
            "classes": {"temporaries": peak}, "memories": [], "peak_step": in_use.index(max(in_use)), "at_peak": [],
            "timeline": timeline, "buffers": buffers}


class ReportPage(unittest.TestCase):
    def agree(self, seen, plan):
        step = plan["peak_step"]
        live = [b for b in plan["buffers"] if b["begin"] <= step < b["end"] and "arena" not in b]
        self.assertEqual(seen["title"], plan["function"])
        self.assertIn(f"{bytes_text(plan['peak'])}\n{plan['peak']:,} bytes", seen["tiles"][0])
        self.assertEqual(seen["step"], step)
        self.assertIn(f"{bytes_text(plan['timeline'][step]['in_use'])} in use", seen["says"])
        self.assertEqual(seen["live"], f"{len(live)} tensors, {bytes_text(sum(b['bytes'] for b in live))}")
        self.assertEqual(sum(b["bytes"] for b in live), plan["timeline"][step]["in_use"])
        self.assertIn(f"{len(plan['buffers']):,} rows", seen["count"])
        self.assertEqual((seen["home"], seen["end"], seen["peak"]), (0, len(plan["timeline"]) - 1, step))
        self.assertEqual((seen["before"], seen["back"]), (max(0, step - 1), max(0, step - 1) + 1))
        self.assertEqual((seen["hovered"], seen["chosen"]), (seen["largest"], seen["largest"]))
        largest = plan["buffers"][seen["largest"]]
        self.assertEqual(largest["bytes"], max(b["bytes"] for b in live))
        for text in (largest["type"], largest["line"], largest["layer"], largest["reason"]):
            self.assertIn(text, seen["tip"])
            self.assertIn(text, seen["chosenText"])
        self.assertNotEqual(seen["above"], seen["chosen"])
        word = seen["searched"]["word"]
        texts = (" ".join((b["type"], b["class"], b["name"], b["line"], b["layer"], b["reason"])) for b in plan["buffers"])
        self.assertEqual(seen["searched"]["count"], sum(word in text for text in texts))
        self.assertEqual(seen["sorted"], sorted((b["begin"] for b in plan["buffers"]), reverse=True)[:50])
        self.assertLess(seen["zoomed"], len(plan["timeline"]))
        self.assertGreater(seen["chartColours"], 20)
        self.assertGreater(seen["arenaColours"], 20)
        self.assertEqual((seen["tab"], seen["stepRows"]), ("steps", len(plan["timeline"])))

    def test_a_run_shows_what_its_json_says(self):
        seen, plan, profile = self_test("run.html"), load("plan.json"), load("profile.json")
        self.agree(seen, plan)
        for field, name in (("byLine", "by_line"), ("byLayer", "by_layer")):
            shown = {each["where"]: each["bytes"] for each in seen[field]}
            self.assertEqual(shown, {each["where"]: each["bytes"] for each in plan[name]})
        self.assertIn(f"{bytes_text(profile['touched'])}\nas planned, to the byte", seen["tiles"][1])
        self.assertIn("measured the same; ran once in", seen["says"])

    def test_loops_branches_and_maps_are_shown(self):
        seen, plan = self_test("loops.html"), load("loops.json")
        self.assertEqual(seen["stepRows"], len(plan["timeline"]))
        self.assertIn("ran 20 times", seen["says"])

    def test_two_plans_are_compared(self):
        seen, before, after = self_test("compare.html"), load("plan.json"), load("larger.json")
        row = next(row for row in seen["compared"] if row[0] == "tidemark")
        self.assertEqual(row[1:3], [bytes_text(before["peak"]), bytes_text(after["peak"])])
        self.assertTrue(row[3].startswith("+" + bytes_text(after["peak"] - before["peak"])), row)
        lines = {row[0]: row for row in seen["compared"]}
        for each in after["by_line"]:
            self.assertEqual(lines[each["where"]][2], bytes_text(each["bytes"]))

    def test_the_slider_shows_the_plan_of_each_budget(self):
        seen, tradeoff, plan = self_test("budgets.html"), load("tradeoff.json"), load("plan.json")
        self.agree(seen, plan)
        budgets, plans = seen["budgets"], [each["plan"] for each in reversed(tradeoff["plans"])]
        self.assertEqual(len(budgets["seen"]), len(plans))
        self.assertEqual(plans[budgets["start"]]["peak"], plan["peak"])
        for shown, wanted in zip(budgets["seen"], plans):
            self.assertIn(f"{bytes_text(wanted['peak'])}\n{wanted['peak']:,} bytes", shown["tile"])
            self.assertEqual(shown["steps"], len(wanted["timeline"]))
            self.assertEqual(shown["peakStep"], wanted["peak_step"])
            self.assertEqual(shown["arenaTop"], wanted["peak"])
            self.assertEqual(shown["decisions"], len(wanted["decisions"]))
            self.assertTrue(shown["says"].startswith(f"{bytes_text(wanted['peak'])} at once"), shown["says"])
            if wanted["peak"] < wanted["usual_peak"]:
                self.assertIn(f"of the usual {bytes_text(plan['peak'])}, with", shown["says"])
        self.assertEqual([shown["isMeasured"] for shown in budgets["seen"]], [wanted["peak"] == plan["peak"] for wanted in plans])
        self.assertEqual((budgets["smaller"], budgets["larger"]), (len(plans) - 2, len(plans) - 1))
        self.assertGreater(budgets["colours"], 20)

    def test_decisions_are_shown_without_a_slider(self):
        dom = browse("within.html", "", "--dump-dom")
        self.assertIn("computes ", re.search(r'id="decisions".*?</table>', dom, re.S).group(0))
        self.assertIn("Within the budget", dom)

    def test_a_profile_alone_is_shown(self):
        subprocess.run([COMMAND, "report", FOLDER / "profile.json", f"--output={FOLDER / 'alone.html'}"], check=True, capture_output=True)
        seen = self_test("alone.html")
        self.assertEqual(seen["stepRows"], len(load("profile.json")["steps"]))
        self.assertEqual(seen["arenaColours"], 0)

    def test_twenty_thousand_tensors_are_shown(self):
        plan = large_plan(20_000, 4_000)
        (FOLDER / "large.json").write_text(json.dumps(plan), encoding="utf-8")
        subprocess.run([COMMAND, "report", FOLDER / "large.json"], check=True, capture_output=True)
        seen = self_test("large.html")
        self.agree(seen, plan)
        self.assertLess(seen["rows"], 100, "rows out of sight should not exist")
        print("20,000 tensors, milliseconds:", seen["ms"])

    def test_light_and_dark_are_drawn(self):
        drawn = []
        for page, theme in (("run", "light"), ("run", "dark"), ("compare", "light"), ("loops", "dark"), ("budgets", "light")):
            picture = FOLDER / f"{page}_{theme}.png"
            browse(f"{page}.html", f"theme={theme}", f"--screenshot={picture}")
            drawn.append(picture.read_bytes())
            self.assertGreater(len(drawn[-1]), 40_000, picture)
        self.assertEqual(len(set(drawn)), len(drawn))

    def test_it_prints(self):
        browse("run.html", "theme=dark", f"--print-to-pdf={FOLDER / 'run.pdf'}", "--no-pdf-header-footer")
        self.assertEqual((FOLDER / "run.pdf").read_bytes()[:4], b"%PDF")


if __name__ == "__main__":
    if BROWSER is None:
        print("skipped: there is no chromium (Debian: apt-get install chromium)")
        sys.exit(77)
    FOLDER.mkdir(parents=True, exist_ok=True)
    FOLDER = FOLDER.resolve()
    subprocess.run([PAGES, FOLDER], check=True, stdout=subprocess.DEVNULL)
    unittest.main(argv=sys.argv[:1])
