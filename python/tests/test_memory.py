"""td.memory: bytes by owner and Python line, limits, scopes, and what grows."""

import threading
import signal
import os
import gc
import re

import numpy as np
import pytest

import tidemark as td


@pytest.fixture(autouse=True)
def no_collector():
    """Nothing here may need Python's garbage collector."""
    gc.disable()
    yield
    gc.enable()


def line_of(text):
    """The number of the line in this file that has the text."""
    for number, line in enumerate(open(__file__, encoding="utf-8"), 1):
        if text in line and "line_of" not in line:
            return f"test_memory.py:{number}"
    raise AssertionError(text)


def test_counts_every_byte_from_creation_to_del():
    before = td.memory.current()
    x = td.zeros((1000, 1000))
    assert td.memory.current() - before == 4_000_000
    y = x[0]
    assert td.memory.current() - before == 4_000_000, "a view adds nothing"
    del x
    assert td.memory.current() - before == 4_000_000, "the view keeps it"
    del y
    assert td.memory.current() == before


def test_bytes_are_ints_that_print_for_people():
    x = td.zeros((1024, 1024))
    assert isinstance(td.memory.current(), int)
    assert str(td.MiB * 4) == "4.0 MiB" and f"{td.Bytes(100)}" == "100 B"
    assert td.memory.limit() == int(td.memory.limit())
    del x


def test_the_peak_is_the_maximum_since_it_was_reset():
    td.memory.reset_peak()
    start = td.memory.current()
    assert td.memory.peak() == start
    x = td.zeros((1000,))
    del x
    assert td.memory.current() == start
    assert td.memory.peak() - start == 4032


def test_classes_add_up():
    v = td.Variable(td.zeros((256, 256)))
    held = {name: td.memory.of(getattr(td.ByteClass, name)) for name in (
        "arguments", "outputs", "variables", "saved", "temporaries", "workspace", "constants", "packed", "shadow")}
    assert held["variables"] >= 256 * 256 * 4
    assert sum(held.values()) == td.memory.current()
    del v


def test_live_names_the_python_line():
    x = td.zeros((512, 512))  # the line that makes it
    rows = {row.line: row for row in td.memory.live().rows}
    row = rows[line_of("# the line that makes it")]
    assert (row.bytes, row.count) == (1 << 20, 1)
    assert line_of("# the line that makes it") in str(td.memory.live())
    del x


def test_a_view_pins_what_it_is_a_view_of():
    x = td.zeros((512, 512))
    y = x[0, :1]  # the line of the view
    del x
    row = {row.line: row for row in td.memory.live().rows}[line_of("# the line of the view")]
    assert (row.viewed, row.pinned) == (4, 1 << 20)
    del y


def test_numpy_arrays_are_borrowed():
    a = np.zeros((1000,), np.float32)
    current, borrowed = td.memory.current(), td.memory.borrowed()
    x = td.asarray(a)
    assert td.memory.borrowed() - borrowed == 4000
    assert td.memory.current() == current
    del x
    assert td.memory.borrowed() == borrowed


def test_the_ledger_adds_up():
    td.memory.ledger()
    ledger = td.memory.ledger()
    assert sum(row.bytes for row in ledger.rows) == ledger.resident
    assert ledger.held == td.memory.current() + td.memory.cached()
    assert ledger.of("cache") == td.memory.cached()
    with pytest.raises(td.UserError):
        ledger.of("nothing")


def test_release_returns_what_is_cached():
    x = td.zeros((1 << 20,))
    del x
    cached = td.memory.cached()
    assert cached >= 4 << 20
    assert td.memory.release() == cached
    assert td.memory.cached() == 0


def test_over_the_limit_is_out_of_memory_with_the_line_and_the_numbers():
    limit = td.memory.limit()
    td.memory.release()
    td.memory.set_limit(td.memory.current() + 64 * td.KiB)
    try:
        with pytest.raises(td.OutOfMemory) as caught:
            td.zeros((1000, 1000))  # too much
    finally:
        td.memory.set_limit(limit)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.asked == 4_000_000
    assert caught.value.limit < 4_000_000
    assert caught.value.file == __file__
    assert line_of("# too much") in str(caught.value)
    assert td.zeros((1000, 1000)).shape == (1000, 1000)


def test_a_limit_must_be_positive():
    with pytest.raises(td.UserError) as caught:
        td.memory.set_limit(0)
    assert caught.value.file == __file__


def test_scopes_nest_and_count_what_is_made_inside():
    with td.MemoryScope("outer") as outer:
        a = td.zeros((1000,))
        with td.MemoryScope("inner") as inner:
            b = td.zeros((2000,))
            assert (inner.current, outer.current) == (8000, 12032)
            del b
            assert (inner.current, inner.peak) == (0, 8000)
    assert (outer.name, outer.current, outer.peak) == ("outer", 4032, 12032)
    del a


def test_watch_finds_the_line_that_leaks():
    kept = []

    def step():
        kept.append(td.zeros((100, 100)))  # it leaks here

    report = td.memory.watch(50, step)
    assert report.verdict == td.Growth.growing
    row = next(row for row in report.rows if row.growth == td.Growth.growing)
    assert row.line == line_of("# it leaks here")
    assert (row.kind, row.count, row.bytes) == ("tensors", 50, 50 * 40_000)
    assert row.bytes_per_step == 40_000
    assert str(report).startswith("50 steps: growing\n")
    kept.clear()


def test_a_loop_that_keeps_nothing_is_flat():
    monitor = td.StepMonitor()
    for _ in range(64):
        x = td.zeros((100, 100))
        y = x + 1
        del x, y
        monitor.step()
    report = monitor.report()
    assert report.verdict == td.Growth.flat
    assert report.steps == 64 and len(report.history) == 64


def test_a_declared_buffer_fills():
    cap = td.memory.DeclaredCap("shuffle buffer", 1000)
    kept = []

    def step():
        kept.append(td.zeros((100,)))
        cap.add(kept[-1])

    report = td.memory.watch(64, step)
    assert report.verdict == td.Growth.filling
    assert any(row.filled == "64 of 1000" for row in report.rows)
    for each in kept:
        cap.remove(each)
    kept.clear()


def test_an_error_in_the_body_of_watch_passes():
    with pytest.raises(ZeroDivisionError):
        td.memory.watch(3, lambda: 1 / 0)


def test_code_counts_pages():
    assert td.memory.code() >= 0 and re.fullmatch(r"[\d.]+ (B|[KMG]iB)", str(td.memory.code()))


@pytest.fixture
def room():
    """room(n) leaves room for n bytes beside what is held."""
    limit = td.memory.limit()

    def leave(count):
        td.memory.release()
        td.memory.set_limit(td.memory.current() + count)

    yield leave
    td.memory.set_limit(limit)


def test_calls_wait_for_memory_and_are_served_in_turn(room):
    f = td.function(lambda x: x * 2, when_full=td.wait_for(3600))
    x = td.ones((10000,))
    f(x)
    room(40000)
    held, order = td.ones((10000,)), []

    def serve(number):
        result = f(x)
        order.append(number)
        del result

    threads = []
    for number in range(4):
        threads.append(threading.Thread(target=serve, args=(number,)))
        threads[-1].start()
        while td.memory.waiting().calls != number + 1:  # Needs the GIL, which the others have released.
            pass
    waiting = td.memory.waiting()
    assert (waiting.bytes, order) == (160000, []) and waiting.longest_ms >= 0
    del held
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3] and td.memory.waiting().calls == 0


def test_a_call_that_waits_too_long_says_so_in_python(room):
    f = td.function(lambda x: x * 2, when_full=td.wait_for(0.001))
    x = td.ones((10000,))
    f(x)
    room(39999)
    with pytest.raises(td.OutOfMemory) as caught:
        f(x)
    text = str(caught.value)
    assert "; waited 1 ms\n" in text and "\n  waiting: 1 call for 39.1 KiB, the first for " in text
    assert text.endswith("(del x), allow more time: when_full=td.wait_for(...), or raise the limit: td.memory.set_limit")


def test_ctrl_c_ends_a_wait(room):
    f = td.function(lambda x: x * 2, when_full=td.wait_for(3600))
    x = td.ones((10000,))
    f(x)
    room(39999)

    def interrupt():
        while td.memory.waiting().calls == 0:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        f(x)
    thread.join()
    assert td.memory.waiting().calls == 0


def test_when_full_takes_a_time():
    with pytest.raises(TypeError, match=r"when_full: td.wait_for\(seconds\) is wanted, got float"):
        td.function(lambda x: x, when_full=0.1)
    with pytest.raises(td.UserError, match="wait_for: a call cannot wait -1 seconds"):
        td.wait_for(-1)
    assert repr(td.wait_for(0.25)) == "td.wait_for(0.25)" and td.wait_for(2).seconds == 2

