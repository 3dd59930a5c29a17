#!/usr/bin/env python3
"""Prints the coefficients that tidemark/loops/math_f32.h and math_f64.h (with math_wide_*) hold.

Each row of FITS is one polynomial: the function it stands for, the interval, its degree, and the
weight of an error at t (an error is judged after it has been multiplied by the weight, so a weight
of 1/g(t) asks for a small error relative to g). The fit is minimax, by Remez exchange in 60 digits;
coefficients are then rounded to the nearest float or double, lowest power first.

Needs mpmath. Usage: fit_polynomials.py [NAME...]
"""
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
        next_term = times([mpf(0), mpf(2)], [mpf(1)])
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


def fits():
    m = mpmath
    ln2 = m.log(2)

    def series_safe(f, limit):
        """f away from 0, its value a little to the side within 1e-15 of it (all f are smooth)."""
        return lambda t: f(t) if abs(t) > mpf("1e-15") else limit

    half_ln2 = ln2 / 2 * mpf("1.0005")
    sqrt_low, sqrt_high = m.sqrt(mpf("0.5")) - 1, m.sqrt(mpf(2)) - 1
    expm1_tail = series_safe(lambda r: (m.expm1(r) - r) / (r * r), mpf("0.5"))
    log_tail = series_safe(lambda f: (m.log1p(f) - f + f * f / 2) / f**3, mpf(1) / 3)

    def relative_to_r_squared(r):
        return r * r if abs(r) > 1e-6 else mpf("1e-12")

    def log_weight(f):
        return abs(f**3 / m.log1p(f)) if abs(f) > 1e-6 else mpf("1e-12")

    quarter_pi_squared = (m.pi / 4 * mpf("1.02")) ** 2
    sin_tail = series_safe(
        lambda s: (m.sin(m.sqrt(s)) / m.sqrt(s) - 1) / s, mpf(-1) / 6)
    cos_tail = series_safe(lambda s: (m.cos(m.sqrt(s)) - 1 + s / 2) / (s * s), mpf(1) / 24)
    erf_tail = series_safe(
        lambda s: m.erf(m.sqrt(s)) / m.sqrt(s) - 1, 2 / m.sqrt(m.pi) - 1)
    log2_atanh = series_safe(
        lambda s: 2 * m.atanh(m.sqrt(s)) / m.sqrt(s) / ln2, 2 / ln2)

    yield "expm1_tail_f32: (expm1(r) - r) / r^2", "f32", expm1_tail, relative_to_r_squared, -half_ln2, half_ln2, 4
    yield "log_tail_f32: (log1p(f) - f + f^2/2) / f^3", "f32", log_tail, log_weight, sqrt_low, sqrt_high, 7
    yield "sin_tail_f32: (sin(r)/r - 1) / s, s = r^2", "f32", sin_tail, (lambda s: s + mpf("1e-9")), 0, quarter_pi_squared, 2
    yield "cos_tail_f32: (cos(r) - 1 + s/2) / s^2, s = r^2", "f32", cos_tail, (lambda s: s * s + mpf("1e-9")), 0, quarter_pi_squared, 2
    yield "erf_tail_f32: erf(x)/x - 1 in s = x^2, |x| <= 1", "f32", erf_tail, (lambda s: mpf(1)), 0, 1, 6
    yield "log_erfc_f32: log(erfc(x)) on [1, 4]", "f32", (lambda x: m.log(m.erfc(x))), m.erfc, 1, 4, 6
    yield "log2_f32: log2((1+s)/(1-s))/s in s^2", "f64", log2_atanh, (lambda s: mpf(1)), 0, (m.sqrt(2) - 1) ** 4, 5
    yield "exp2_f32: 2^t", "f64", (lambda t: mpf(2) ** t), (lambda t: mpf(1)), -0.5, 0.5, 6
    atanh_tail = series_safe(
        lambda z: (2 * m.atanh(m.sqrt(z)) / m.sqrt(z) - 2) / z, mpf(2) / 3)
    atanh_tail2 = series_safe(
        lambda z: ((2 * m.atanh(m.sqrt(z)) / m.sqrt(z) - 2) / z - mpf(2) / 3) / z, mpf(2) / 5)
    atanh_end = (m.sqrt(2) - 1) ** 4
    yield "expm1_tail_f64: (expm1(r) - r) / r^2", "f64", expm1_tail, relative_to_r_squared, -half_ln2, half_ln2, 9
    yield "atanh_tail_f64: (log((1+s)/(1-s))/s - 2) / z, z = s^2", "f64", atanh_tail, (lambda z: z + mpf("1e-9")), 0, atanh_end, 6
    yield "atanh_tail2_f64: ((log((1+s)/(1-s))/s - 2) / z - 2/3) / z", "f64", atanh_tail2, (lambda z: z * z + mpf("1e-9")), 0, atanh_end, 7
    yield "sin_tail_f64: (sin(r)/r - 1) / s, s = r^2", "f64", sin_tail, (lambda s: s + mpf("1e-9")), 0, quarter_pi_squared, 5
    yield "cos_tail_f64: (cos(r) - 1 + s/2) / s^2, s = r^2", "f64", cos_tail, (lambda s: s * s + mpf("1e-9")), 0, quarter_pi_squared, 5
    yield "erf_tail_f64: erf(x)/x - 1 in s = x^2, |x| <= 1", "f64", erf_tail, (lambda s: mpf(1)), 0, 1, 11
    yield "log_erfc_f64: log(erfc(x)) on [1, 6]", "f64", (lambda x: m.log(m.erfc(x))), m.erfc, 1, 6, 18


def main():
    for name, kind, f, weight, low, high, degree in fits():
        if len(sys.argv) > 1 and not any(name.startswith(a) for a in sys.argv[1:]):
            continue
        coefficients, worst = remez(f, weight, low, high, degree)
        print(f"{name}, degree {degree}, worst weighted error 2^{float(mpmath.log(worst, 2)):.1f}")
        for c in coefficients:
            rounded = as_float(c) if kind == "f32" else float(c)
            print(f"  {rounded.hex() if kind == 'f64' else repr(rounded)}")


if __name__ == "__main__":
    main()
