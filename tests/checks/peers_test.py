"""bench/peers/run without any peer: it explains itself, refuses what it does not know, and measures our side.

usage: peers_test.py PEER_CASES
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers" / "run"
PROGRAM = sys.argv.pop()


def run(*arguments):
    return subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True)


class Peers(unittest.TestCase):
    def refused(self, text, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(text, done.stderr)

    def test_it_explains_itself(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("usage: bench/peers/run [--install]", done.stdout)

    def test_it_refuses_what_it_does_not_know(self):
        self.refused("no case is called 'chian'; there are chain, chain_big", "chian")
        self.refused("invalid choice: 'numpy'", "--peer", "numpy")
        self.refused("--repeat 0: at least 1 round is needed", "--repeat", "0")
        self.refused("--peer none goes with no other peer", "--peer", "none", "--peer", "jax")
        self.refused("/nowhere/cases is not there; make it with", "--program", "/nowhere/cases", "chain")
        self.refused("--python /nowhere/python: cannot be run", "--program", PROGRAM, "--python", "/nowhere/python")

    def test_every_case_has_our_side_and_one_for_each_peer(self):
        names = run("--list").stdout.split()
        listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True)
        self.assertEqual(listed.stdout.split(), names)
        for peer in ("tensorflow", "jax", "torch"):
            text = RUN.with_name(f"{peer}_cases.py").read_text(encoding="utf-8")
            for name in names:
                self.assertIn(f'    "{name}": ', text, peer)

    def test_our_side_gives_results_and_planned_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder, "sub", "out")
            done = run("--peer", "none", "--repeat", "2", "--seconds", "0", "--output", prefix, "--program", PROGRAM,
                       "acc_calls", "accumulate", "map_big", "eager_ops")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            written = json.loads(pathlib.Path(f"{prefix}.json").read_text(encoding="utf-8"))
            markdown = pathlib.Path(f"{prefix}.md").read_text(encoding="utf-8")
        rows = {row["case"]: row for row in written["results"]}
        self.assertEqual(list(rows), ["acc_calls", "accumulate", "map_big", "eager_ops"])
        for case in rows:
            self.assertIn(f"| {case} | tidemark |", markdown)
        self.assertEqual(rows["acc_calls"]["result"]["elements"], [100.0] * 8)
        # Row i is [1, 2] + i; the mean of 10,000 of them is 1.5 + 4999.5.
        self.assertEqual(rows["accumulate"]["result"]["mean"], 5001.0)
        self.assertEqual(rows["map_big"]["result"]["elements"][-1], 99e6)
        # Results, and nothing else: 1, 20,000 and 100 floats, each rounded to 64 bytes.
        planned = {case: row["planned_bytes"] for case, row in rows.items()}
        self.assertEqual(planned, {"acc_calls": 64, "accumulate": 80000, "map_big": 448, "eager_ops": None})


if __name__ == "__main__":
    unittest.main()
