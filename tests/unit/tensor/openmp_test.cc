// A program may use OpenMP beside us, and its number of threads is its own.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

TEST(OpenMP, KeepsItsNumberOfThreads) {
  void* const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) GTEST_SKIP() << "libgomp is not installed";
  const auto get = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
  ASSERT_TRUE(get != nullptr && set != nullptr);
  const auto compute = [] {
    const Tensor x = ones({256, 256});
    EXPECT_EQ(sum(matmul(x, x)).item<float>(), 256.0F * 256.0F * 256.0F);
    const Tensor image = ones({1, 16, 16, 4});
    EXPECT_EQ(conv2d(image, ones({3, 3, 4, 8})).shape(), Shape({1, 14, 14, 8}));
    EXPECT_EQ(softmax(random::normal({64, 64})).shape(), Shape({64, 64}));
  };
  const int before = get();
  compute();
  EXPECT_EQ(get(), before);
  set(before + 3);
  compute();
  EXPECT_EQ(get(), before + 3);
  set_num_threads(num_threads() + 1);
  compute();
  EXPECT_EQ(get(), before + 3);
}

}  // namespace
}  // namespace tidemark
