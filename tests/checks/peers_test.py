"""bench/peers/run and bench/gradients without any peer: they refuse what they do not know, and measure our side.

usage: peers_test.py PEER_CASES GRADIENTS
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers" / "run"
GRADIENTS = sys.argv.pop()
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
        self.refused("invalid choice: 'mmx'", "--isa", "mmx")
        self.refused("'0': from 1 to the ", "--threads", "0")
        self.refused("--peer none goes with no other peer", "--peer", "none", "--peer", "jax")
        self.refused("/nowhere/cases is not there; make it with", "--program", "/nowhere/cases", "chain")
        self.refused("--python /nowhere/python: cannot be run", "--program", PROGRAM, "--python", "/nowhere/python")

    def test_checkpoints_refuse_what_they_do_not_know(self):
        script = RUN.with_name("checkpoint.py")
        ask = lambda *arguments: subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
        self.assertIn("usage: bench/peers/checkpoint.py", ask("--help").stdout)
        for text, arguments in (
            ("no model is called 'gtp'; there are gpt_step, residual", ["gtp"]),
            ("invalid choice: 'numpy'", ["--peer", "numpy"]),
            ("/nowhere/budgets is not there", ["--program", "/nowhere/budgets"]),
        ):
            done = ask(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)

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

    def test_it_measures_by_number_of_threads_and_instruction_set(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder, "out")
            done = run("--peer", "none", "--repeat", "1", "--seconds", "0", "--output", prefix, "--program", PROGRAM,
                       "--isa", "avx2", "--threads", "1,1", "acc_calls")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            markdown = pathlib.Path(f"{prefix}.md").read_text(encoding="utf-8")
        self.assertIn("| acc_calls, 1 thread | tidemark |", markdown)
        self.assertIn("| case | who | 1, ms | 1, ms | speed-up |\n|---|---|---|---|---|\n| acc_calls | tidemark |", markdown)

    def test_ops_refuses_what_it_does_not_know(self):
        script = RUN.parents[1] / "ops" / "run"
        ask = lambda *arguments: subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
        self.assertIn("usage: bench/ops/run [option...] [word...]", ask("--help").stdout)
        for text, arguments in (
            ("invalid choice: 'mmx'", ["--isa", "mmx"]),
            ("argument --threads: invalid numbers value: '0'", ["--threads", "0"]),
            ("--repeat 0: at least 1 round is needed", ["--repeat", "0"]),
        ):
            done = ask(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)
        self.assertEqual(ask("--ready", "--python", "/nowhere/python").returncode, 3)

    def test_a_step_of_training_tells_how_far_it_moved_the_parameters(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder, "out")
            done = run("--peer", "none", "--repeat", "1", "--seconds", "0", "--output", prefix, "--program", PROGRAM,
                       "mlp_step", "lstm_grad")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            written = json.loads(pathlib.Path(f"{prefix}.json").read_text(encoding="utf-8"))
        step, gradient = [row["result"] for row in written["results"]]
        self.assertEqual(step["count"], 784 * 1024 + 2 * 1024 * 1024 + 1024 * 10 + 3 * 1024 + 10)
        # From the start, whatever the calls before did. JAX 0.10.2 gives these numbers.
        self.assertAlmostEqual(step["elements"][-1], 0.00029629093, delta=1e-8)
        # Gradients by three weights, and the value last.
        self.assertEqual(gradient["count"], 2 * 128 * 512 + 512 + 1)
        self.assertAlmostEqual(gradient["elements"][-1], 0.01898407, delta=1e-7)

    def gradients(self, *arguments, python=None):
        """bench/gradients of the LSTM with a program in the place of Python."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "python")
            file.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
            file.chmod(0o755)
            options = ["0.01", "--python", file, "lstm_grad"]
            return subprocess.run([GRADIENTS, *(arguments or options)], capture_output=True, text=True)

    def test_gradients_refuses_what_it_does_not_know(self):
        done = self.gradients("--python", "/nowhere/python")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "gradients: --python /nowhere/python: cannot be run\n")
        done = self.gradients("lstm_grid")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("models: mlp_step softmax_ce", done.stderr)

    def test_gradients_says_which_peers_are_missing_or_fail(self):
        told = self.gradients(python='[ "$1" = -c ] && echo torch || { echo "no room" >&2; exit 1; }').stdout
        self.assertIn("  jax jit              not installed; bench/peers/run --install --peer jax\n", told)
        self.assertIn("  tensorflow xla       not installed; bench/peers/run --install --peer tensorflow\n", told)
        self.assertIn("  torch eager          failed: no room\n", told)
        self.assertIn("lstm_grad, MiB beside its results", told)
        self.assertNotIn("of the time of", told)

    def test_gradients_holds_us_to_shares_of_what_jax_takes(self):
        figures = '{"best_s": 1e-9, "first_s": 1e9, "temporary_bytes": 1073741824}'
        done = self.gradients(python=f"[ \"$1\" = -c ] && echo jax || echo '{figures}'")
        self.assertEqual(done.returncode, 1)
        rows = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
        self.assertRegex(rows["lstm_grad, of JAX's temporaries"], r" 0\.0\d\d  <=    0.700  pass")
        self.assertRegex(rows["lstm_grad, of JAX's first call"], r" 0\.000  <=    0.500  pass")
        self.assertRegex(rows["lstm_grad, of the time of jax jit"], r"  <=    0.600  MISS")


if __name__ == "__main__":
    unittest.main()
