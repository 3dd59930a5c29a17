"""One (peer, mode, case) in a process of its own: `measure.py PEER MODE CASE [SECONDS]`, one line of JSON.

Measured as main.cc measures our side. A peer's file has CASES, by name: a function of the mode that makes
the inputs and gives the call to measure, or None where the case says nothing in that mode. A call may have
checked(): what is compared, where that is not its result. A file may have planned(call): what the peer says
it needs beyond arguments, and how much of that is temporary.
"""

import gc
import importlib
import json
import os
import statistics
import sys
import time

import numpy


def status_bytes(key):
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def fingerprint(results):
    values = numpy.concatenate([numpy.asarray(result, numpy.float32).ravel() for result in results]).astype(float)
    return {
        "count": len(values),
        "mean": float(values.mean()),
        "magnitude": float(numpy.abs(values).mean()),
        "elements": [float(values[k * (len(values) - 1) // 7]) for k in range(8)],
    }


# PEERS_CLOCK=cpu counts processor time, for a machine that others use too.
call_clock = time.process_time if os.environ.get("PEERS_CLOCK") == "cpu" else time.perf_counter


def timed(call):
    begin = call_clock()
    call()
    return call_clock() - begin


def wants_more(samples, elapsed, seconds):
    """At least five samples, unless calls take seconds."""
    return samples < 1 or (samples < 5 and elapsed < 5) or (samples < 10_000 and elapsed < seconds)


def measure(call, seconds):
    gc.collect()
    time.sleep(0.2)  # What made the inputs may be given back by another thread.
    start_bytes = status_bytes("VmRSS")
    reset_peak()
    first_s = timed(call)
    call()
    once = max(1e-9, timed(call))
    calls = min(100_000, max(1, int(1e-3 / once)))
    warm_bytes = status_bytes("VmRSS")
    reset_peak()
    samples = []
    begin = time.perf_counter()
    while wants_more(len(samples), time.perf_counter() - begin, seconds):
        sample_begin = call_clock()
        for _ in range(calls):
            call()
        samples.append((call_clock() - sample_begin) / calls)
    return {
        "best_s": min(samples),
        "median_s": statistics.median(samples),
        "first_s": first_s,
        "peak_bytes": status_bytes("VmHWM") - start_bytes,
        "growth_bytes": status_bytes("VmRSS") - warm_bytes,
    }


def main(peer_name, mode, case, seconds="0.5"):
    peer = importlib.import_module(peer_name + "_cases")
    call = peer.CASES[case](mode) if case in peer.CASES else None
    if call is None:
        print(json.dumps({"skipped": True}))
        return
    figures = measure(call, float(seconds))
    planned, temporary = getattr(peer, "planned", lambda _: (None, None))(call)
    result = getattr(call, "checked", call)()
    figures |= {"planned_bytes": planned, "temporary_bytes": temporary}
    figures |= {"result": fingerprint(result if isinstance(result, (tuple, list)) else [result])}
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
