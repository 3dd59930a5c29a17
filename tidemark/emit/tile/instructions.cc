#include "tidemark/emit/tile/instructions.h"

#include "tidemark/loops/expr.h"

namespace tidemark {

TileFunction tile_function(ExprOp op, DType dtype, DType operand, device::Isa isa) {
  if (arity(op) == 0 || !is_defined(op, dtype, operand)) return nullptr;
  const auto choose = [&](auto cast, auto arithmetic, auto elementary) -> TileFunction {
    if (op == ExprOp::cast) return cast(dtype, operand);
    const TileFunction function = arithmetic(op, operand);
    return function != nullptr ? function : elementary(op, operand);
  };
  switch (isa) {
    case device::Isa::baseline:
      return choose(tile::baseline::cast, tile::baseline::arithmetic, tile::baseline::elementary);
    case device::Isa::avx2:
      return choose(tile::avx2::cast, tile::avx2::arithmetic, tile::avx2::elementary);
    case device::Isa::avx512:
      return choose(tile::avx512::cast, tile::avx512::arithmetic, tile::avx512::elementary);
  }
  return nullptr;
}

TileFunction tile_function(ExprOp op, DType dtype, DType operand) {
  return tile_function(op, dtype, operand, device::isa());
}

namespace tile {

FoldFunctions fold_functions(Monoid monoid, DType dtype, device::Isa isa) {
  switch (isa) {
    case device::Isa::baseline:
      return baseline::fold(monoid, dtype);
    case device::Isa::avx2:
      return avx2::fold(monoid, dtype);
    case device::Isa::avx512:
      return avx512::fold(monoid, dtype);
  }
  return {};
}

}  // namespace tile
}  // namespace tidemark
