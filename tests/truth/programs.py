#!/usr/bin/env python3
"""Random programs, run by Tidemark and judged by JAX and NumPy.

  programs.py --driver PATH [--seeds A..B] [--jobs N]    compares; 500 programs unless told
  programs.py --driver PATH --text FILE...               compares the programs of files
  programs.py --show SEED                                prints a program

Each seed is a program (generate.py) that truth_driver runs eagerly, as a function, unfused, with open
sizes, with donated arguments and under a tape; truth.py says what comes out. A program that comes out
otherwise is made small and printed with its seed. Exit codes: 0 all agree, 1 some do not, 77 JAX is not
installed.
"""

import argparse
import collections
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

if importlib.util.find_spec("jax") is None or importlib.util.find_spec("numpy") is None:
    print("skipped: JAX is not installed", file=sys.stderr)
    sys.exit(77)

# One program is small: threads of others only stand in the way.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import coverage  # noqa: E402
from generate import Generator  # noqa: E402
from program_text import parse, walk  # noqa: E402

NO_DERIVATIVE = "the gradient of this loop is not differentiable"
CHUNK = 20  # Programs that one process of the driver runs.


def program_of(seed):
    return Generator(seed, coverage.wanted(seed)).make()


def driven(driver, programs):
    """What the driver says about each: {seed: {mode: [(kind, call, array)] or an error}}."""
    import numpy as np
    said = {}
    waiting = list(programs)
    while waiting:
        text = "".join(program.text() for program in waiting)
        run = subprocess.run([driver], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        out, at, modes, mode, done = run.stdout, 0, None, None, 0
        while at < len(out):
            end = out.index(b"\n", at)
            words, at = out[at:end].decode(errors="replace").split(" "), end + 1
            if words[0] == "program":
                modes = said[int(words[1])] = {}
            elif words[0] == "mode":
                mode = words[1]
                modes[mode] = []
            elif words[0] == "error":
                modes[mode] = "error: " + " ".join(words[1:])
            elif words[0] == "end":
                done += 1
            else:
                shape = [int(word) for word in words[3:]]
                count = int(np.prod(shape, dtype=np.int64))
                kind = np.float64 if words[2] in ("f64", "f32", "f16", "bf16") else np.int64
                array = np.frombuffer(out, kind, count, at).reshape(shape)
                at += 8 * count
                modes[mode].append((words[0], int(words[1]), array.astype(bool) if words[2] == "bool" else array))
        if run.returncode == 0:
            break
        # It died in a program: that one is blamed, the others go on.
        lost = said.setdefault(waiting[done].seed, {})
        lost[mode or "start"] = f"crash: signal {-run.returncode}: " + run.stderr.decode(errors="replace")[-300:].replace("\n", " ")
        for late in waiting[done].modes:
            lost.setdefault(late, None)
        waiting = waiting[done + 1:]
    return said


def judged(program, modes, counts):
    """What is wrong with a program: a list of (mode, text)."""
    import numpy as np

    from truth import Truth

    # The library says in its documentation that it has no such derivative.
    refused = [mode for mode, said in modes.items() if isinstance(said, str) and NO_DERIVATIVE in said]
    counts["refused"] += len(refused)
    modes = {mode: said for mode, said in modes.items() if mode not in refused}
    wrong = [(mode, said) for mode, said in modes.items() if isinstance(said, str)]
    eager = modes.get("eager.value")
    if not isinstance(eager, list):
        return wrong
    draws = [array for kind, _, array in eager if kind == "draw"]
    truths, checked = {}, set()
    for mode, said in modes.items():
        if not isinstance(said, list):
            continue
        what = mode.split(".")[1]
        calls = collections.OrderedDict()
        for kind, call, array in said:
            if kind != "draw":
                calls.setdefault(call, []).append(array)
        for call, arrays in calls.items():
            if call not in truths:
                if call > 0 and any(s.op.startswith("random_") for s in walk(program.body)):
                    continue  # What was drawn is known at the first sizes alone.
                truths[call] = Truth(program, call, draws)
            truth = truths[call]
            if truth.unstable:
                counts["unstable"] += 1
                continue
            counts["compared." + what] += 1
            said_wrong = differing(list(truth.expected(what)), arrays, np, counts)
            if truth.narrow is not None and (call, what) not in checked:
                checked.add((call, what))
                counts["f32"] += 1
                counts["f32 outside"] += any(off > 1 for off in truth.off_in_f32(what))
            if said_wrong and truth.narrow is not None:
                said_wrong += f"; NumPy in f32 is off by {max(truth.off_in_f32(what), default=0.0):.2g} times what may be"
            if said_wrong:
                wrong.append((mode, f"sizes {program.sizes_at(call) if program.sizes else ''} {said_wrong}"))
                break
    return wrong


def differing(expected, arrays, np, counts):
    """The first difference, or nothing. A mode's arrays come in rounds, one for each call."""
    if not expected:
        return None
    if len(arrays) % len(expected):
        return f"{len(arrays)} results, expected {len(expected)}"
    for number, got in enumerate(arrays):
        want, room = expected[number % len(expected)]
        if got.shape != want.shape:
            return f"result {number % len(expected)} has shape {list(got.shape)}, expected {list(want.shape)}"
        if room is None:
            good = got == want
        else:
            finite, steady = np.isfinite(want) & np.isfinite(room), room == -1
            counts["elements"] += int(finite.sum())
            counts["vague elements"] += int((~finite | (room > 0.05 * np.max(np.abs(want[finite]), initial=1e-3))).sum())
            with np.errstate(all="ignore"):
                same = (got == want) | np.isnan(got) & np.isnan(want)
                good = np.where(steady, same, ~finite | (np.abs(got - want) <= room))
        if not np.all(good):
            at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0]) if got.ndim else ()
            return (f"result {number % len(expected)}{list(at)} of call {number // len(expected)}: {got[at]!r}, expected {want[at]!r}"
                    + ("" if room is None else f" within {room[at]:.3g}") + (f"; {got.tolist()} for {want.tolist()}" if got.size <= 24 else ""))
    return None


def compare(driver, programs, counts):
    """[(program, wrong)] of those that are wrong."""
    from truth import JudgesDisagree

    said = driven(driver, programs)
    found = []
    for program in programs:
        try:
            wrong = judged(program, said.get(program.seed, {}), counts)
        except JudgesDisagree:
            counts["unjudged"] += 1
            continue
        except Exception as error:  # The judge's own fault, or a program that means nothing.
            wrong = [("truth", f"{type(error).__name__}: {error}")]
        counts["programs"] += 1
        if wrong:
            found.append((program, wrong))
    return found


def work(driver, seeds, results, shrinks):
    """One worker: chunks of seeds from a queue, findings to another."""
    import jax
    jax.config.update("jax_enable_x64", True)
    from shrink import shrunk
    while True:
        chunk = seeds.get()
        if chunk is None:
            results.put(None)
            return
        counts, seen, failures = collections.Counter(), collections.Counter(), []
        try:
            programs = [program_of(seed) for seed in chunk]
        except Exception as error:
            results.put((counts, seen, [(f"generator: {type(error).__name__}: {error}", [("generator", str(chunk))], "")]))
            continue
        for program in programs:
            coverage.count(program, seen)
        for program, wrong in compare(driver, programs, counts):
            small = ""
            with shrinks.get_lock():
                may_shrink = shrinks.value > 0
                shrinks.value -= 1
            if may_shrink and wrong[0][0] != "truth":
                smaller, said = shrunk(program, wrong, lambda p: compare(driver, [p], collections.Counter()))
                small = smaller.text() + "".join(f"# {mode}: {text}\n" for mode, text in said)
            failures.append((program.text(), wrong, small))
        results.put((counts, seen, failures))


def report(text, wrong, small):
    """One line of what is wrong, found by `grep '^WRONG'`; then the program."""
    seed = text.split()[1] if text.startswith("program") else "?"
    first, others = wrong[0], [mode for mode, _ in wrong[1:]]
    print("\n" + "=" * 100)
    print(f"WRONG {seed} {first[0]}: {first[1][:300]}" + (f" (also {' '.join(others)})" if others else ""))
    print(text, end="")
    for mode, said in wrong:
        print(f"# {mode}: {said}")
    if small:
        print("made small:\n" + small, end="")
    sys.stdout.flush()


def run_all(driver, seeds, jobs, shrink_most):
    """Counts and coverage of all, after what is wrong was printed."""
    queue, results = multiprocessing.Queue(), multiprocessing.Queue()
    shrinks = multiprocessing.Value("i", shrink_most)
    for at in range(0, len(seeds), CHUNK):
        queue.put(list(seeds[at:at + CHUNK]))
    for _ in range(jobs):
        queue.put(None)
    workers = [multiprocessing.Process(target=work, args=(driver, queue, results, shrinks)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    counts, seen, wrong, ended = collections.Counter(), collections.Counter(), 0, 0
    while ended < jobs:
        got = results.get()
        if got is None:
            ended += 1
            continue
        counts.update(got[0])
        seen.update(got[1])
        for failure in got[2]:
            wrong += 1
            report(*failure)
    for worker in workers:
        worker.join()
    return counts, seen, wrong


def seeds_of(text):
    if text is None:
        return range(1, 10001 if os.environ.get("TIDEMARK_TEST_COUNTS") == "full" else 501)
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def judge_files(driver, paths):
    """How many programs of files are wrong, after each was printed."""
    import jax
    jax.config.update("jax_enable_x64", True)
    programs, counts = [], collections.Counter()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            programs += [parse("program " + part) for part in file.read().split("program ") if part.strip()]
    wrong = compare(driver, programs, counts)
    for program, said in wrong:
        report(program.text(), said, "")
    print(f"{counts['programs']} programs of files, {len(wrong)} of them wrong")
    return len(wrong)


def judge_found(driver):
    """Those that were wrong once; in a process of its own, since JAX and fork do not go together."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "found")
    files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    return subprocess.run([sys.executable, __file__, "--driver", driver, "--text", *files], check=False).returncode


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--driver")
    options.add_argument("--seeds", help="A..B, both included; one number is one program")
    options.add_argument("--jobs", type=int, default=int(os.environ.get("TIDEMARK_TEST_JOBS", "2")))
    options.add_argument("--shrink", type=int, default=5, help="how many failures are made small")
    options.add_argument("--text", nargs="+")
    options.add_argument("--show", type=int)
    given = options.parse_args()
    if given.show is not None:
        print(program_of(given.show).text(), end="")
        return 0
    if given.text:
        return 1 if judge_files(given.driver, given.text) else 0
    began = time.monotonic()
    seeds = seeds_of(given.seeds)
    wrong_again = judge_found(given.driver) if given.seeds is None else 0
    counts, seen, wrong = run_all(given.driver, seeds, given.jobs, given.shrink)
    missing = coverage.report(given.driver, seen, demand=len(seeds) >= 500, demand_kinds=len(seeds) >= 2000)
    seconds = time.monotonic() - began
    print(f"{counts['programs']} programs, {wrong} of them wrong, in {seconds:.0f} s; compared: "
          + ", ".join(f"{name[9:]} {count}" for name, count in sorted(counts.items()) if name.startswith("compared."))
          + f"; {counts['elements']} elements of floats, {counts['vague elements']} of them ill-conditioned; "
          f"{counts['unstable']} runs not compared, whose branches hang on roundings; "
          f"{counts['f32 outside']} of {counts['f32']} results of NumPy in f32 are outside of what f32 may be; "
          f"{counts['refused']} derivatives refused as documented; {counts['unjudged']} programs on which NumPy and JAX disagree")
    too_many = counts["unjudged"] * 50 > counts["programs"]  # The judges are then at fault.
    return 1 if wrong or wrong_again or missing or too_many else 0


if __name__ == "__main__":
    sys.exit(main())
