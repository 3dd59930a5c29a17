#include <gtest/gtest.h>

#include "tests/unit/emit/naive.h"
#include "tests/unit/emit/tile/call.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

using namespace testing;
using device::Isa;

// Elements of one dtype, side by side.
struct Row {
  DType dtype;
  std::vector<std::byte> bytes;

  Row(DType d, size_t n) : dtype(d), bytes(n * size_of(d)) {}
  uint64_t get(size_t i) const { return read_element(dtype, &bytes[i * size_of(dtype)]); }
  void set(size_t i, uint64_t bits) { write_element(dtype, &bytes[i * size_of(dtype)], bits); }
};

struct Case {
  ExprOp op;
  DType dtype, operand;
  std::string text() const { return cat(name(op), " of ", operand, " giving ", dtype); }
};

std::vector<Case> all_cases() {
  std::vector<Case> result;
  for (int op = 0; op < kExprOps; ++op) {
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      for (int operand = 0; operand < kDTypes; ++operand) {
        const Case c = {static_cast<ExprOp>(op), static_cast<DType>(dtype),
                        static_cast<DType>(operand)};
        if (arity(c.op) > 0 && is_defined(c.op, c.dtype, c.operand)) result.push_back(c);
      }
    }
  }
  return result;
}

// Operands: every pair of special values, then random ones.
std::vector<Row> operands_of(const Case& c) {
  const std::vector<uint64_t> special = special_values(c.operand);
  const size_t n = special.size() * special.size() + 500;
  std::vector<Row> rows;
  std::mt19937_64 random(7);
  for (int k = 0; k < arity(c.op); ++k) {
    const DType dtype = c.op == ExprOp::select && k == 0 ? boolean : c.operand;
    Row& row = rows.emplace_back(dtype, n);
    for (size_t i = 0; i < n; ++i) {
      const bool pair = i < special.size() * special.size() && dtype == c.operand && k < 2;
      const size_t which = k == 0 ? i / special.size() : i % special.size();
      row.set(i, pair ? special[which] : random_value(dtype, random));
    }
  }
  return rows;
}

std::string differences(const Case& c, const std::vector<Row>& in, const Row& out, size_t n) {
  std::string text;
  int shown = 0;
  for (size_t i = 0; i < n && shown < 3; ++i) {
    uint64_t words[3] = {};
    for (size_t k = 0; k < in.size(); ++k) words[k] = in[k].get(i);
    const uint64_t expected = naive_apply(c.op, c.dtype, c.operand, words[0], words[1], words[2]);
    if (same(c.dtype, expected, out.get(i))) continue;
    ++shown;
    text += cat(c.text(), " (", std::hex, words[0], ", ", words[1], ", ", words[2], ") is ",
                out.get(i), ", not ", expected, "\n");
  }
  return text;
}

TEST(TileInstructions, ExistWhereTheOpIsDefined) {
  for (const Isa isa : available_isas()) {
    for (const Case& c : all_cases()) {
      EXPECT_NE(tile_function(c.op, c.dtype, c.operand, isa), nullptr) << c.text();
    }
  }
  EXPECT_EQ(tile_function(ExprOp::add, f16, f16), nullptr);
  EXPECT_EQ(tile_function(ExprOp::add, boolean, boolean), nullptr);
  EXPECT_EQ(tile_function(ExprOp::sqrt, i32, i32), nullptr);
  EXPECT_EQ(tile_function(ExprOp::load, f32, f32), nullptr);
}

TEST(TileInstructions, GiveTheDefinedBitsOnEveryInstructionSet) {
  for (const Case& c : all_cases()) {
    const std::vector<Row> in = operands_of(c);
    const size_t n = in[0].bytes.size() / size_of(in[0].dtype);
    const void* pointers[3] = {};
    for (size_t k = 0; k < in.size(); ++k) pointers[k] = in[k].bytes.data();
    for (const Isa isa : available_isas()) {
      Row out(c.dtype, n);
      tile_function(c.op, c.dtype, c.operand, isa)(pointers, out.bytes.data(), n);
      EXPECT_EQ(differences(c, in, out, n), "") << "instruction set " << static_cast<int>(isa);
    }
  }
}

TEST(TileInstructions, StopAtTheLastElement) {
  for (const Case& c : all_cases()) {
    const std::vector<Row> in = operands_of(c);
    const void* pointers[3] = {};
    for (size_t k = 0; k < in.size(); ++k) pointers[k] = in[k].bytes.data();
    for (const Isa isa : available_isas()) {
      for (size_t n = 0; n < 70; n += n < 20 ? 1 : 7) {
        Row out(c.dtype, n + 1);
        out.set(n, 0x55);
        tile_function(c.op, c.dtype, c.operand, isa)(pointers, out.bytes.data(), n);
        EXPECT_EQ(differences(c, in, out, n), "") << n << " elements";
        EXPECT_EQ(out.get(n), 0x55U) << c.text();
      }
    }
  }
}

TEST(TileInstructions, MayWriteOverAnOperand) {
  for (const Case& c : all_cases()) {
    const std::vector<Row> in = operands_of(c);
    const size_t n = in[0].bytes.size() / size_of(in[0].dtype);
    for (const Isa isa : available_isas()) {
      for (size_t over = 0; over < in.size(); ++over) {
        if (size_of(in[over].dtype) != size_of(c.dtype)) continue;
        Row out(c.dtype, n);
        out.bytes = in[over].bytes;
        const void* pointers[3] = {};
        for (size_t k = 0; k < in.size(); ++k) {
          pointers[k] = k == over ? out.bytes.data() : in[k].bytes.data();
        }
        tile_function(c.op, c.dtype, c.operand, isa)(pointers, out.bytes.data(), n);
        EXPECT_EQ(differences(c, in, out, n), "") << "over operand " << over;
      }
    }
  }
}

}  // namespace
}  // namespace tidemark
