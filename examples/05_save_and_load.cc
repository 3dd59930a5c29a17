// Lesson 5: a model and all that its training needs, in one file that is whole or not there.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  const std::string path = (std::filesystem::temp_directory_path() / "lesson.safetensors").string();
  const td::Tensor x = td::random::normal({32, 8}, {.key = td::random::Key(1)});
  const td::Tensor y = td::sum(x * x, 1, td::keepdims);

  td::nn::Sequential model{td::nn::Dense(16, {.activation = "tanh"}), td::nn::Dense(1)};
  td::nn::Adam optimizer({.learning_rate = 0.01});
  const auto step = [&] {
    td::GradientTape tape;
    const td::Tensor loss = td::nn::losses::mse(y, model(x));
    optimizer.minimize(tape, loss, model);
    return loss;
  };
  for (int i = 0; i < 20; ++i) step();

  // The Variables of both are found by themselves; the state of random draws goes with them.
  td::io::Checkpoint checkpoint{{"model", model}, {"optimizer", optimizer}};
  checkpoint.save(path);
  const td::Tensor next = step();
  checkpoint.load(path);
  const td::Tensor again = step();
  std::cout << "step 21: " << next << ", and from the file: " << again << '\n';

  for (const auto& [name, tensor] : td::io::load_safetensors(path))
    std::cout << "  " << name << ' ' << tensor.shape() << '\n';
  std::remove(path.c_str());
  return td::identical(next, again) ? 0 : 1;
}
