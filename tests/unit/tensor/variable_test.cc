#include "tidemark/api/variable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "tidemark/api/create.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/compile/cpu/kernels.h"

namespace tidemark {
namespace {

constexpr int64_t kElements = 1 << 20;  // 4 MiB of f32.

const void* address_of(const Variable& variable) {
  return variable.value().span<const float>().data();
}

std::vector<float> values(const Variable& variable) { return variable.value().to_vector<float>(); }

TEST(Variable, ACopyIsTheSameVariable) {
  const Variable a(constant({1.0f, 2.0f}), {.name = "a", .trainable = false});
  const Variable b = a;
  b.assign(constant({3.0f, 4.0f}));
  EXPECT_EQ(values(a), (std::vector<float>{3, 4}));
  EXPECT_TRUE(a.same_as(b));
  EXPECT_FALSE(a.same_as(a.clone()));
  EXPECT_EQ(a.name(), "a");
  EXPECT_FALSE(a.trainable());
  EXPECT_EQ(a.shape(), Shape{2});
  EXPECT_EQ(a.dtype(), DType::f32);
}

TEST(Variable, AdoptsTheBytesOfATensorMovedIn) {
  Tensor initial = zeros({kElements});
  const void* data = initial.span<const float>().data();
  const Bytes before = memory::of(ByteClass::variables);
  const Bytes temporaries = memory::of(ByteClass::temporaries);
  const MemoryScope scope("adopt");
  {
    const Variable variable(std::move(initial));
    EXPECT_EQ(address_of(variable), data);
    EXPECT_EQ(memory::of(ByteClass::variables) - before, 4_MiB);
    EXPECT_EQ(memory::of(ByteClass::temporaries), temporaries - 4_MiB);
    EXPECT_EQ(scope.peak(), 0_B);
  }
  EXPECT_EQ(memory::of(ByteClass::variables), before);
}

TEST(Variable, CopiesATensorThatSomebodyElseHolds) {
  const Tensor initial = constant({1.0f, 2.0f});
  const Variable variable(initial);
  variable.assign_add(1);
  EXPECT_EQ(initial.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(variable), (std::vector<float>{2, 3}));
}

TEST(Variable, CopiesMemoryThatIsBorrowed) {
  const std::vector<float> memory = {1, 2};
  const Variable variable(borrow(std::span(memory), {2}));
  variable.assign_add(1);
  EXPECT_EQ(memory, (std::vector<float>{1, 2}));
}

TEST(Variable, IsAssignedInPlace) {
  const Variable variable(zeros({kElements}));
  const Tensor one = ones({kElements});
  const void* data = address_of(variable);
  const MemoryScope scope("assign");
  variable.assign(one);
  variable.assign_add(one);
  variable.assign_add(2);
  variable.assign_sub(one);
  variable.assign_slice({Slice{.end = 2}}, 7);
  EXPECT_LT(scope.peak(), 64_KiB) << "more than the scratch of a kernel";
  EXPECT_EQ(address_of(variable), data);
  EXPECT_EQ(variable[0].item<float>(), 7);
  EXPECT_EQ(variable[2].item<float>(), 3);
}

TEST(Variable, IsAddedToWithoutATemporary) {
  const compile::Emitter before = compile::emitter();
  compile::set_emitter(compile::Emitter::llvm);  // Interpreted tiles take scratch.
  const Variable variable(zeros({kElements}));
  const Tensor one = ones({kElements});
  const MemoryScope scope("assign_add");
  variable.assign_add(one);
  variable.assign_sub(0.5);
  EXPECT_EQ(scope.peak(), 0_B);
  EXPECT_EQ(variable[9].item<float>(), 0.5f);
  compile::set_emitter(before);
}

TEST(Variable, AdoptsAValueMovedInWithoutACopy) {
  const Variable variable(zeros({kElements}));
  Tensor value = ones({kElements});
  const void* data = value.span<const float>().data();
  const MemoryScope scope("assign");
  variable.assign(std::move(value));
  EXPECT_EQ(address_of(variable), data);
  EXPECT_EQ(scope.peak(), 0_B);
}

TEST(Variable, ASnapshotKeepsItsValue) {
  const Bytes before = memory::of(ByteClass::variables);
  {
    const Variable variable(full({100}, 1.0f));
    Tensor snapshot = variable;
    const Tensor row = variable[{Slice{.begin = 1, .end = 3}}];
    variable.assign_add(1);
    EXPECT_EQ(memory::of(ByteClass::variables) - before, 448_B)
        << "the snapshot's bytes are no longer the Variable's";
    variable.assign(full({100}, 5.0f));
    variable.assign_slice(0, 9);
    EXPECT_EQ(snapshot[0].item<float>(), 1);
    EXPECT_EQ(row.to_vector<float>(), (std::vector<float>{1, 1}));
    snapshot += 10;
    EXPECT_EQ(variable[0].item<float>(), 9);
    EXPECT_EQ(variable[1].item<float>(), 5);
  }
  EXPECT_EQ(memory::of(ByteClass::variables), before);
}

TEST(Variable, ASnapshotOutlivesItsVariable) {
  const Bytes before = memory::of(ByteClass::variables);
  Tensor snapshot;
  {
    const Variable variable(full({100}, 3.0f));
    snapshot = variable;
  }
  EXPECT_EQ(memory::of(ByteClass::variables), before);
  EXPECT_EQ(snapshot[99].item<float>(), 3);
}

TEST(Variable, MayBeAddedToItself) {
  const Variable variable(constant({1.0f, 2.0f}));
  variable.assign_add(variable);
  variable.assign_slice(0, variable[1]);
  EXPECT_EQ(values(variable), (std::vector<float>{4, 4}));
  variable.assign(variable);
  EXPECT_EQ(values(variable), (std::vector<float>{4, 4}));
}

TEST(Variable, TakesPlainNumbersInItsOwnDType) {
  const Variable rate(0.5);
  rate.assign(0.25);
  EXPECT_EQ(rate.dtype(), DType::f32);
  EXPECT_EQ((rate * constant({2.0, 4.0}, f64)).dtype(), DType::f64) << "no weak number any more";
  const Variable narrow(zeros({2}), {.dtype = bf16});
  narrow.assign_add(1);
  EXPECT_EQ(narrow.dtype(), DType::bf16);
  EXPECT_EQ(values(narrow), (std::vector<float>{1, 1}));
}

TEST(Variable, StandsWhereTensorsStand) {
  const Variable a(constant({{1.0f, 2.0f}, {3.0f, 4.0f}}));
  EXPECT_EQ((a + a - 1).to_vector<float>(), (std::vector<float>{1, 3, 5, 7}));
  EXPECT_EQ(sum(a).item<float>(), 10);
  EXPECT_EQ(matmul(a, a)[0][0].item<float>(), 7);
  EXPECT_EQ(concat({a, a}, 0).shape(), (Shape{4, 2}));
}

TEST(Variable, DeclaredTakesItsBytesAtTheFirstUse) {
  const Bytes before = memory::current();
  int calls = 0;
  const Variable variable({kElements},
                          [&](const Shape& shape, DType dtype) {
                            ++calls;
                            return full(shape, 2, dtype);
                          },
                          {.name = "table"});
  EXPECT_EQ(variable.shape(), Shape{kElements});
  const Variable other = variable.clone();
  EXPECT_EQ(memory::current(), before);
  variable.assign_add(1);
  EXPECT_EQ(variable[5].item<float>(), 3);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(memory::current() - before, 4_MiB);
  EXPECT_EQ(other[5].item<float>(), 2);
}

TEST(Variable, DeclaredAndAssignedNeverAsksItsInitializer) {
  const Variable variable({2}, [](const Shape&, DType) -> Tensor {
    ADD_FAILURE() << "asked";
    return {};
  });
  variable.assign(constant({1.0f, 2.0f}));
  EXPECT_EQ(values(variable), (std::vector<float>{1, 2}));
}

TEST(Variable, FailedAssignmentsChangeNothing) {
  const Variable variable(full({kElements}, 1.0f));
  const Tensor snapshot = variable;
  const Bytes limit = memory::limit();
  memory::release();
  memory::set_limit(memory::current() + 1_MiB);
  EXPECT_THROW(variable.assign_add(1), OutOfMemory);
  EXPECT_THROW(variable.assign_slice(0, 1), OutOfMemory);
  EXPECT_THROW(variable.assign(snapshot), OutOfMemory);
  memory::set_limit(limit);
  EXPECT_TRUE(identical(variable, snapshot));
}

TEST(Variable, Prints) {
  std::ostringstream out;
  out << Variable(constant({1.5f, 2.0f}), {.name = "w"}) << '\n'
      << Variable(constant(3)) << '\n'
      << Variable({4}, [](const Shape& shape, DType dtype) { return zeros(shape, dtype); });
  EXPECT_EQ(out.str(),
            "Variable w f32[2]\n[1.5 2. ]\nVariable i32[]\n3\nVariable f32[4], declared");
}

// Writers keep all elements equal, so that a torn read would show.
TEST(Variable, IsNeverSeenHalfWritten) {
  const Variable variable(zeros({20000}));
  const Tensor one = ones({20000});
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done) {
      const Tensor now = variable;
      if (max(now).item<float>() != min(now).item<float>()) ++torn;
    }
  });
  std::thread writers[2];
  for (std::thread& writer : writers)
    writer = std::thread([&] {
      for (int i = 0; i < 200; ++i) variable.assign_add(one);
    });
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(variable[0].item<float>(), 400);
}

}  // namespace
}  // namespace tidemark
