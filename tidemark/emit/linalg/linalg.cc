#include "tidemark/emit/linalg/linalg.h"

#include <cmath>
#include <limits>

#include "tidemark/base/error.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/linalg/factor.h"
#include "tidemark/emit/linalg/rotations.h"

namespace tidemark::factor {
namespace {

// The axes before the last two.
int64_t batch_rank(const Work& work) { return work.operands[0].rank() - 2; }

int64_t batch_count(const Work& work) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < batch_rank(work); ++axis) count *= work.operands[0].shape[axis];
  return count;
}

// One problem of the batch, or, to count, any.
template <class T>
class Entry {
 public:
  Entry(Room& room, const Work& work, int64_t number) : room_(room), work_(work), number_(number) {}

  void run() {
    switch (work_.problem) {
      case Problem::cholesky:
        return cholesky();
      case Problem::solve_triangular:
        return solve_triangular();
      case Problem::lu:
        return lu();
      case Problem::solve:
        return solve();
      case Problem::qr:
        return qr();
      case Problem::eigh:
        return eigh();
      case Problem::svd:
        return svd();
      case Problem::pinv:
        return pinv();
      case Problem::expm:
        return factor::expm(room_, operand(0), result(0));
    }
  }

 private:
  // Where this entry begins in an array.
  template <class U>
  U* begin(const ArrayRef& array) const {
    int64_t rest = number_, offset = 0;
    for (int64_t axis = batch_rank(work_) - 1; axis >= 0; --axis) {
      offset += rest % array.shape[axis] * array.strides[static_cast<size_t>(axis)];
      rest /= array.shape[axis];
    }
    return reinterpret_cast<U*>(array.data) + offset;
  }
  Matrix<T> matrix(const ArrayRef& array) const {
    const auto last = static_cast<size_t>(array.rank() - 1);
    T* const data = room_.counts() ? reinterpret_cast<T*>(Room::kNowhere) : begin<T>(array);
    return {data, array.shape[-2], array.shape[-1], array.strides[last - 1], array.strides[last]};
  }
  Matrix<T> operand(size_t i) const { return matrix(work_.operands[i]); }
  Matrix<T> result(size_t i) const { return matrix(work_.results[i]); }
  bool uses(size_t i) const { return room_.counts() || work_.results[i].data != nullptr; }
  bool runs() const { return !room_.counts(); }

  void cholesky() {
    const Matrix<T> a = operand(0), l = result(0);
    const int64_t n = a.rows;
    if (runs())
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = i; j < n; ++j) l(i, j) = (a(i, j) + a(j, i)) / 2;
    const bool is_positive = cholesky_upper(room_, l);
    if (!runs()) return;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        l(i, j) = l(j, i);
        l(j, i) = 0;
      }
    }
    for (int64_t i = 0; i < n && !is_positive; ++i)
      for (int64_t j = 0; j <= i; ++j) l(i, j) = std::numeric_limits<T>::quiet_NaN();
  }

  void solve_triangular() {
    const Matrix<T> t = operand(0), x = result(0);
    const int64_t n = t.rows;
    const bool lower = work_.lower != work_.transposed;
    const Room::Taken<T> minus(room_, n, n);
    const Matrix<T> triangle = minus.matrix(n, n);
    if (runs()) {
      copy(operand(1), x);
      negate_triangle(work_.transposed ? t.turned() : t, lower, work_.unit, triangle);
    }
    solve_triangle(room_, triangle, lower, work_.unit, x);
  }

  void lu() {
    const Matrix<T> a = operand(0);
    const int64_t n = a.rows;
    // Either result may be unused, but both are made.
    const Room::Taken<T> factors(room_, n, n);
    const Room::Taken<int64_t> orders(room_, n);
    const Matrix<T> made = uses(0) && runs() ? result(0) : factors.matrix(n, n);
    int64_t* const order = uses(1) && runs() ? begin<int64_t>(work_.results[1]) : orders.data();
    if (runs()) {
      copy(a, made);
      for (int64_t i = 0; i < n; ++i) order[i] = i;
    }
    lu_in_place(room_, made, order);
  }

  void solve() {
    const Matrix<T> a = operand(0), b = operand(1), x = result(0);
    const int64_t n = a.rows;
    const Room::Taken<T> factors(room_, n, n);
    const Room::Taken<T> rows(room_, work_.transposed ? n : 0, b.columns);
    const Room::Taken<int64_t> orders(room_, n);
    const Matrix<T> made = factors.matrix(n, n);
    const Matrix<T> ordered = work_.transposed ? rows.matrix(n, b.columns) : x;
    int64_t* const order = orders.data();
    if (runs()) {
      copy(a, made);
      for (int64_t i = 0; i < n; ++i) order[i] = i;
    }
    lu_in_place(room_, made, order);
    if (runs())
      for (int64_t i = 0; i < n; ++i)
        copy(b.part(work_.transposed ? i : order[i], 0, 1, b.columns),
             ordered.part(i, 0, 1, b.columns));
    lu_solve(room_, made, work_.transposed, ordered);
    if (!runs() || !work_.transposed) return;
    for (int64_t i = 0; i < n; ++i)
      copy(ordered.part(i, 0, 1, b.columns), x.part(order[i], 0, 1, b.columns));
  }

  void qr() {
    const Matrix<T> a = operand(0);
    const int64_t m = a.rows, n = a.columns, count = std::min(m, n);
    const bool is_small = std::max(m, n) <= kSmallSide && count > 0;
    const int64_t vectors = is_small && uses(0) ? result(0).columns : 0;
    const Room::Taken<T> copies(room_, m, n), reflectors(room_, is_small ? n : count, m),
        taus(room_, count), columns(room_, vectors, m);
    const Matrix<T> r = copies.matrix(m, n), v = reflectors.matrix(count, m);
    const Matrix<T> turned = columns.matrix(vectors, m);
    const bool is_done = is_small && runs() && factor_small(r, reflectors.matrix(n, m), turned);
    if (runs() && !is_done) copy(a, r);
    if (!is_done) qr_reflectors(room_, r, v, taus.data());
    if (uses(0)) {
      const Matrix<T> q = result(0);
      if (is_done) {
        kernels<T>().transpose(turned.data, turned.row, vectors, m, false, q.data, q.row);
      } else {
        if (runs()) set_identity(q);
        apply_all_reflectors(room_, v, taus.data(), true, q);
      }
      for (int64_t j = 0; j < count && runs(); ++j)
        for (int64_t i = 0; i < m && r(j, j) < 0; ++i) q(i, j) = -q(i, j);
    }
    if (!uses(1) || !runs()) return;
    const Matrix<T> out = result(1);
    fill(out, T{0});
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = i; j < n; ++j) out(i, j) = r(i, i) < 0 ? -r(i, j) : r(i, j);
  }

  // Small matrices take no products.
  bool factor_small(const Matrix<T>& r, const Matrix<T>& v, const Matrix<T>& q) const {
    const Matrix<T> a = operand(0);
    for (int64_t j = 0; j < a.columns; ++j) std::fill(v.line(j) + a.rows, v.line(j) + v.row, T{0});
    copy(a, v.turned());
    return kernels<T>().factor_small(
        {v.data, v.row, a.rows, a.columns, r.data, r.row, q.data, q.row, q.rows});
  }

  void eigh() {
    const Matrix<T> a = operand(0);
    const int64_t n = a.rows;
    const Room::Taken<T> copies(room_, n, n), spare(room_, n), rows(room_, n, n);
    const Matrix<T> symmetric = copies.matrix(n, n);
    const Matrix<T> vectors = uses(1) ? rows.matrix(n, n) : Matrix<T>{};
    if (runs())
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) symmetric(i, j) = (a(i, j) + a(j, i)) / 2;
    T* const values = uses(0) && runs() ? begin<T>(work_.results[0]) : spare.data();
    eigh_rows(room_, symmetric, values, vectors);
    if (uses(1) && runs()) copy(vectors.turned(), result(1));
  }

  // The singular value decomposition of a or, if that is wide, of its transpose; `left` holds the
  // vectors of the longer side, as rows.
  struct Parts {
    Matrix<T> left, right;
    T* values;
  };
  void decompose(const Matrix<T>& a, const Parts& parts) {
    const Matrix<T> tall = a.rows < a.columns ? a.turned() : a;
    const Room::Taken<T> copies(room_, tall.rows, tall.columns);
    const Matrix<T> work = copies.matrix(tall.rows, tall.columns);
    if (runs()) copy(tall, work);
    svd_rows(room_, work, parts.values, parts.left, parts.right);
  }

  void svd() {
    const Matrix<T> a = operand(0);
    const bool wide = a.rows < a.columns;
    const int64_t longer = std::max(a.rows, a.columns), shorter = std::min(a.rows, a.columns);
    const bool vectors = uses(0) || uses(2);
    const Room::Taken<T> lefts(room_, shorter, longer), rights(room_, shorter, shorter),
        spare(room_, shorter);
    const Parts parts{vectors ? lefts.matrix(shorter, longer) : Matrix<T>{},
                      vectors ? rights.matrix(shorter, shorter) : Matrix<T>{},
                      uses(1) && runs() ? begin<T>(work_.results[1]) : spare.data()};
    decompose(a, parts);
    if (!runs()) return;
    const Matrix<T>&v = wide ? parts.left : parts.right, &u = wide ? parts.right : parts.left;
    for (int64_t i = 0; i < v.rows; ++i) {
      if (sign_of_largest(v.line(i), v.columns) >= 0) continue;
      negate(v.line(i), v.columns);
      negate(u.line(i), u.columns);
    }
    if (uses(0)) copy(u.turned(), result(0));
    if (uses(2)) copy(v, result(2));
  }

  void pinv() {
    if (!pinv_of_full_rank() || room_.counts()) pinv_of_any_rank();
  }

  // From q r: the pseudoinverse, as columns, is q r^-T. False if the rank may be less than full.
  bool pinv_of_full_rank() {
    const Matrix<T> a = operand(0), tall = a.rows < a.columns ? a.turned() : a;
    const Matrix<T> inverse = a.rows < a.columns ? result(0) : result(0).turned();
    const int64_t m = tall.rows, n = tall.columns;
    const Room::Taken<T> copies(room_, m, n), reflectors(room_, n, m), taus(room_, n),
        columns(room_, m, n), triangles(room_, n, n);
    const Matrix<T> r = copies.matrix(m, n), v = reflectors.matrix(n, m);
    const Matrix<T> made = columns.matrix(m, n), triangle = triangles.matrix(n, n);
    if (runs()) copy(tall, r);
    qr_reflectors(room_, r, v, taus.data());
    if (runs()) {
      negate_triangle(r.part(0, 0, n, n).turned(), true, false, triangle);
      set_identity(made);
    }
    solve_triangle(room_, triangle, true, false, made.part(0, 0, n, n));
    if (runs() && !has_full_rank(triangle, made.part(0, 0, n, n))) return false;
    apply_all_reflectors(room_, v, taus.data(), false, made);
    if (runs() && inverse.row == 1)
      kernels<T>().transpose(made.data, made.row, m, n, false, inverse.data, inverse.column);
    else if (runs())
      copy(made, inverse);
    return true;
  }

  // No singular value is below the cutoff, by bounds: the largest is at most the norm of r, the
  // smallest at least 1 over that of its inverse. Half is for what rounding changes in these, if
  // the cutoff is not below what it changes.
  bool has_full_rank(const Matrix<T>& r, const Matrix<T>& inverse) const {
    const Matrix<T> a = operand(0);
    const auto longer = static_cast<double>(std::max(a.rows, a.columns));
    const double least = std::max(work_.cutoff, longer * std::numeric_limits<T>::epsilon());
    return lower_norm(r) * lower_norm(inverse) * least <= 0.5;
  }
  static double lower_norm(const Matrix<T>& lower) {
    double sum = 0;
    for (int64_t i = 0; i < lower.rows; ++i)
      for (int64_t j = 0; j <= i; ++j)
        sum += static_cast<double>(lower(i, j)) * static_cast<double>(lower(i, j));
    return std::sqrt(sum);
  }

  void pinv_of_any_rank() {
    const Matrix<T> a = operand(0), inverse = result(0);
    const bool wide = a.rows < a.columns;
    const int64_t longer = std::max(a.rows, a.columns), shorter = std::min(a.rows, a.columns);
    const Room::Taken<T> lefts(room_, shorter, longer), rights(room_, shorter, shorter),
        values(room_, shorter);
    const Parts parts{lefts.matrix(shorter, longer), rights.matrix(shorter, shorter),
                      values.data()};
    decompose(a, parts);
    if (runs()) {
      for (int64_t i = 0; i < shorter; ++i) {
        const T value = parts.values[i];
        const bool counts = !(value <= static_cast<T>(work_.cutoff) * parts.values[0]);
        const T factor = counts ? 1 / value : T{0};
        for (int64_t j = 0; j < shorter; ++j) parts.right(i, j) *= factor;
      }
    }
    room_.multiply(wide ? parts.left.turned() : parts.right.turned(),
                   wide ? parts.right : parts.left, inverse);
  }

  Room& room_;
  const Work& work_;
  int64_t number_;
};

int64_t entry_bytes(const Work& work, int threads) {
  Room room(threads);
  if (work.operands.back().dtype == DType::f32)
    Entry<float>(room, work, 0).run();
  else
    Entry<double>(room, work, 0).run();
  return room.most();
}

// Enough entries that a thread is worth waking.
int64_t grain(const Work& work) {
  const ArrayRef& a = work.operands[0];
  const int64_t m = a.shape[-2], n = a.shape[-1];
  return std::max<int64_t>(1, 20000 / std::max<int64_t>(1, m * n * std::min(m, n)));
}

template <class T>
void run_entries(const Work& work, int64_t begin, int64_t end, int threads, std::byte* scratch) {
  for (int64_t number = begin; number < end; ++number) {
    Room room(threads, scratch);
    Entry<T>(room, work, number).run();
  }
}

}  // namespace

int64_t scratch_bytes(const Work& work, int threads) {
  const int64_t count = batch_count(work);
  if (count == 0) return 0;
  if (count == 1) return entry_bytes(work, threads);
  return device::workers_of(count, grain(work), threads) * entry_bytes(work, 1);
}

void run(const Work& work, int threads, std::byte* scratch) {
  const int64_t count = batch_count(work);
  const auto entries =
      work.operands.back().dtype == DType::f32 ? run_entries<float> : run_entries<double>;
  if (count == 0) return;
  const device::FloatEnvironment ieee;
  if (count == 1) return entries(work, 0, 1, threads, scratch);
  const int64_t bytes = entry_bytes(work, 1);
  device::parallel_for(count, grain(work), threads, [&](int64_t begin, int64_t end, int worker) {
    entries(work, begin, end, 1, scratch + worker * bytes);
  });
}

}  // namespace tidemark::factor
