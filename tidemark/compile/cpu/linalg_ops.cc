#include "tidemark/compile/cpu/linalg_ops.h"

#include <optional>

#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/linalg/linalg.h"
#include "tidemark/ops/linalg.h"

namespace tidemark::compile {
namespace {

std::optional<factor::Problem> problem_of(Routine routine) {
  switch (routine) {
    case Routine::cholesky:
      return factor::Problem::cholesky;
    case Routine::eigh:
      return factor::Problem::eigh;
    case Routine::expm:
      return factor::Problem::expm;
    case Routine::lu:
      return factor::Problem::lu;
    case Routine::pinv:
      return factor::Problem::pinv;
    case Routine::qr:
      return factor::Problem::qr;
    case Routine::solve:
      return factor::Problem::solve;
    case Routine::solve_triangular:
      return factor::Problem::solve_triangular;
    case Routine::svd:
      return factor::Problem::svd;
    default:
      return std::nullopt;
  }
}

factor::Work linalg_work(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                         std::span<const ArrayRef> results) {
  factor::Work work{.problem = *problem_of(op.routine), .operands = operands, .results = results};
  Attrs::Reader read = attrs.read();
  if (op.routine == Routine::solve_triangular) work.lower = read.boolean();
  if (op.routine == Routine::solve_triangular || op.routine == Routine::solve)
    work.transposed = read.boolean();
  if (op.routine == Routine::solve_triangular) work.unit = read.boolean();
  if (op.routine == Routine::pinv)
    work.cutoff = ops::pinv_cutoff(operands[0].shape, operands[0].dtype, read.number());
  return work;
}

}  // namespace

bool is_linalg(Routine routine) { return problem_of(routine).has_value(); }

int64_t linalg_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                         std::span<const ArrayRef> results) {
  return granted_bytes(
      factor::scratch_bytes(linalg_work(op, operands, attrs, results), num_threads()));
}

void run_linalg(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                std::span<const ArrayRef> results) {
  const int threads = num_threads();
  const factor::Work work = linalg_work(op, operands, attrs, results);
  const Workspace scratch(factor::scratch_bytes(work, threads));
  if (WorkspacePart::preparing()) return;
  factor::run(work, threads, scratch.data());
}

}  // namespace tidemark::compile
