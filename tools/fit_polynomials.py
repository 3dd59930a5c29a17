#!/usr/bin/env python3
"""Prints the coefficients that the headers tidemark/loops/math*.h and the angles and erfinv in tidemark/ops hold.

Each row of `fits` is one polynomial: the function it stands for, the interval, its degree, and the
weight of an error at t (an error is judged after it has been multiplied by the weight, so a weight
of 1/g(t) asks for a small error relative to g). The fit is minimax, by Remez exchange in 60 digits;
coefficients are then rounded to the nearest float or double. They are printed lowest power first.

Needs mpmath. Usage: fit_polynomials.py [NAME...]
"""
import re
import struct
import sys

from mpmath import mp, mpf
import mpmath

mp.dps = 60
GRID = 1500


def remez(f, weight, low, high, degree):
    """The polynomial of `degree` in t whose largest weighted error on [low, high] is least."""
    low, high = mpf(low), mpf(high)
    count = degree + 2
    middle, half = (low + high) / 2, (high - low) / 2
    # Fitted in u in [-1, 1] with Chebyshev polynomials, where the system is well conditioned.
    grid = [mpmath.cos(mp.pi * k / GRID) for k in range(GRID, -1, -1)]
    values = [f(middle + half * u) for u in grid]
    weights = [weight(middle + half * u) for u in grid]
    basis = [[mpmath.chebyt(j, u) for j in range(degree + 1)] for u in grid]
    points = [round(k * GRID / (count - 1)) for k in range(count)]
    for _ in range(12):
        system = mpmath.matrix(count, count)
        right = mpmath.matrix(count, 1)
        for row, k in enumerate(points):
            for j in range(degree + 1):
                system[row, j] = basis[k][j]
            system[row, degree + 1] = (-1) ** row / weights[k]
            right[row] = values[k]
        solution = mpmath.lu_solve(system, right)
        errors = [
            (mpmath.fsum(solution[j] * b[j] for j in range(degree + 1)) - v) * w
            for b, v, w in zip(basis, values, weights)
        ]
        chosen = [0]
        for k in range(1, len(grid)):
            if (errors[k] > 0) == (errors[chosen[-1]] > 0):
                if abs(errors[k]) > abs(errors[chosen[-1]]):
                    chosen[-1] = k
            else:
                chosen.append(k)
        while len(chosen) > count:
            chosen.pop(0 if abs(errors[chosen[0]]) < abs(errors[chosen[-1]]) else -1)
        if len(chosen) < count or chosen == points:
            break
        points = chosen
    worst = max(abs(e) for e in errors)
    return monomials(solution, degree, middle, half), worst


def monomials(chebyshev, degree, middle, half):
    """Coefficients in powers of t from coefficients of T_j((t - middle) / half)."""
    def times(a, b):
        out = [mpf(0)] * (len(a) + len(b) - 1)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                out[i + j] += x * y
        return out

    u = [-middle / half, 1 / half]
    terms = [[mpf(1)], u]
    while len(terms) <= degree:
        next_term = [2 * c for c in times(u, terms[-1])]
        for i, c in enumerate(terms[-2]):
            next_term[i] -= c
        terms.append(next_term)
    out = [mpf(0)] * (degree + 1)
    for j in range(degree + 1):
        for i, c in enumerate(terms[j]):
            out[i] += chebyshev[j] * c
    return out


def as_float(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def away_from_zero(f, limit):
    """f, with its limit at 0 put in where the formula is 0/0."""
    return lambda t: f(t) if abs(t) > mpf("1e-15") else limit


def fits():
    """Rows of (name, formula, format, function, weight, low, high, degree)."""
    m = mpmath
    ln2 = m.log(2)
    root = m.sqrt
    tiny = mpf("1e-9")

    r_end = ln2 / 2 * mpf("1.0005")
    expm1_tail = away_from_zero(lambda r: (m.expm1(r) - r) / r**2, mpf(1) / 2)
    square = lambda r: max(r**2, mpf("1e-12"))
    expm1_text = "(expm1(r) - r) / r^2"
    yield "expm1_tail_f32", expm1_text, "f32", expm1_tail, square, -r_end, r_end, 4
    yield "expm1_tail_f64", expm1_text, "f64", expm1_tail, square, -r_end, r_end, 9

    f_low, f_high = root(mpf("0.5")) - 1, root(mpf(2)) - 1
    log_tail = away_from_zero(lambda f: (m.log1p(f) - f + f**2 / 2) / f**3, mpf(1) / 3)
    log_weight = away_from_zero(lambda f: abs(f**3 / m.log1p(f)) + tiny, tiny)
    yield ("log_tail_f32", "(log1p(f) - f + f^2/2) / f^3", "f32", log_tail, log_weight,
           f_low, f_high, 7)

    log2_factor = away_from_zero(lambda f: m.log1p(f) / (f * ln2), 1 / ln2)
    yield ("wide_log2_f32", "log2(1 + f) / f", "f64", log2_factor, lambda f: 1 / log2_factor(f),
           f_low, f_high, 13)

    # log((1 + s) / (1 - s)) = 2 atanh(s), in z = s^2.
    z_end = (root(mpf(2)) - 1) ** 4
    atanh2 = lambda z: 2 * m.atanh(root(z)) / root(z)
    third = mpf(2) / 3
    yield ("log2_f32", "2 atanh(s) / (s ln2)", "f64",
           away_from_zero(lambda z: atanh2(z) / ln2, 2 / ln2), lambda z: mpf(1), 0, z_end, 5)
    yield ("atanh_tail_f64", "(2 atanh(s)/s - 2) / z", "f64",
           away_from_zero(lambda z: (atanh2(z) - 2) / z, third), lambda z: z + tiny, 0, z_end, 6)
    yield ("atanh_tail2_f64", "((2 atanh(s)/s - 2) / z - 2/3) / z", "f64",
           away_from_zero(lambda z: ((atanh2(z) - 2) / z - third) / z, mpf(2) / 5),
           lambda z: z**2 + tiny, 0, z_end, 7)

    yield ("exp2_f32", "2^t", "f64", lambda t: mpf(2) ** t, lambda t: mpf(1), -0.5, 0.5, 6)

    # In s = r^2, a little beyond pi/4, since the quadrant is found with rounded numbers.
    s_end = (m.pi / 4 * mpf("1.02")) ** 2
    sin_tail = away_from_zero(lambda s: (m.sin(root(s)) / root(s) - 1) / s, -mpf(1) / 6)
    cos_tail = away_from_zero(lambda s: (m.cos(root(s)) - 1 + s / 2) / s**2, mpf(1) / 24)
    for format, degree in (("f32", 2), ("f64", 5)):
        yield ("sin_tail_" + format, "(sin(r)/r - 1) / s", format, sin_tail,
               lambda s: s + tiny, 0, s_end, degree)
        yield ("cos_tail_" + format, "(cos(r) - 1 + s/2) / s^2", format, cos_tail,
               lambda s: s**2 + tiny, 0, s_end, degree)

    # In z = u^2 for |u| <= tan(pi/8), a little beyond.
    z_end = (m.tan(m.pi / 8) * mpf("1.001")) ** 2
    yield ("atan_tail_f64", "(atan(u)/u - 1) / z", "f64",
           away_from_zero(lambda z: (m.atan(root(z)) / root(z) - 1) / z, -mpf(1) / 3),
           lambda z: z + tiny, 0, z_end, 10)
    # For slopes up to 1, in f64 to be rounded to f32, and in f32; and for sines up to 1/2.
    atan_tail = away_from_zero(lambda z: (m.atan(root(z)) / root(z) - 1) / z, -mpf(1) / 3)
    atan_weight = away_from_zero(lambda z: z * root(z) / m.atan(root(z)), tiny)
    for name, format, degree in (("atan_slope_for_f32", "f64", 12), ("atan_slope_f32", "f32", 8)):
        yield name, "(atan(u)/u - 1) / z", format, atan_tail, atan_weight, 0, 1, degree
    yield ("asin_f32", "(asin(u)/u - 1) / z", "f32",
           away_from_zero(lambda z: (m.asin(root(z)) / root(z) - 1) / z, mpf(1) / 6),
           away_from_zero(lambda z: z * root(z) / m.asin(root(z)), tiny), 0, mpf("0.251"), 4)

    # erfinv(x) / x by w = -log(1 - x^2).
    def erfinv_factor(w):
        x = root(-m.expm1(-w))
        return m.erfinv(x) / x if w > mpf("1e-12") else root(m.pi) / 2
    near = lambda t: erfinv_factor(t + mpf(5) / 2)
    far = lambda t: erfinv_factor((t + 3) ** 2)
    yield ("erfinv_near_f32", "erfinv(x)/x in w - 2.5", "f32", near, lambda t: 1 / near(t),
           -mpf(5) / 2, mpf(5) / 2, 9)
    yield ("erfinv_far_f32", "erfinv(x)/x in sqrt(w) - 3", "f32", far, lambda t: 1 / far(t),
           root(mpf(5)) - 3, 1, 9)

    erf_tail = away_from_zero(lambda s: m.erf(root(s)) / root(s) - 1, 2 / root(m.pi) - 1)
    log_erfc = lambda x: m.log(m.erfc(x))
    for format, degree, end, far_degree in (("f32", 6, 4, 6), ("f64", 11, 6, 18)):
        yield ("erf_tail_" + format, "erf(x)/x - 1 in x^2, |x| <= 1", format, erf_tail,
               lambda s: mpf(1), 0, 1, degree)
        yield ("log_erfc_" + format, f"log(erfc(x)) on [1, {end}]", format, log_erfc,
               m.erfc, 1, end, far_degree)

    # Nearly constant in t = (x - k) / (x + k), from x = 0 to where erfc underflows.
    def scaled_erfc(t, k):
        x = k * (1 + t) / (1 - t)
        return x, m.exp(x * x) * m.erfc(x)

    def with_2_f32(t):
        x, value = scaled_erfc(t, 2)
        return (x + 2) / 2 * value

    def with_4_f64(t):
        x, value = scaled_erfc(t, 4)
        return (1 + 2 * x) * value
    yield ("erfc_f32", "(1 + x/2) exp(x^2) erfc(x), k = 2", "f32", with_2_f32,
           lambda t: 1 / with_2_f32(t), -1, mpf(9) / 13, 10)
    yield ("erfc_f64", "(1 + 2x) exp(x^2) erfc(x), k = 4", "f64", with_4_f64,
           lambda t: mpf(1), -1, mpf(24) / 32, 22)


def hexadecimal(x):
    return re.sub(r"\.?0*p", "p", float(x).hex())


def print_two_over_pi():
    """2/pi in words, and in pieces less the leading bits that large angles do not need."""
    mp.prec = 1500
    value = 2 / mp.pi
    print("two_over_pi: words of 48 bits")
    for k in range(25):
        value *= 2**48
        print("  " + hexadecimal(mpmath.floor(value) / 2**48))
        value -= mpmath.floor(value)
    for least in (None, 1, 27, 53, 79):  # Angles are multiples of 2^least.
        value = 2 / mp.pi
        last = 0
        if least is not None:
            last = 2 - least
            value -= mpmath.floor(mpmath.ldexp(value, -last)) * mpf(2) ** last
        print(f"two_over_pi: 29 bits, 29 bits and the rest, below 2^{last}")
        for _ in range(2):
            last -= 29
            piece = mpmath.floor(mpmath.ldexp(value, -last)) * mpf(2) ** last
            print("  " + hexadecimal(piece))
            value -= piece
        print("  " + hexadecimal(value))


def main():
    wanted = sys.argv[1:]
    for name, formula, format, f, weight, low, high, degree in fits():
        if wanted and name not in wanted:
            continue
        coefficients, worst = remez(f, weight, low, high, degree)
        size = float(mpmath.log(worst, 2))
        print(f"{name}: {formula}, degree {degree}, worst weighted error 2^{size:.1f}")
        for c in coefficients:
            print("  " + (repr(as_float(c)) if format == "f32" else hexadecimal(c)))
    if not wanted or "two_over_pi" in wanted:
        print_two_over_pi()


if __name__ == "__main__":
    main()
