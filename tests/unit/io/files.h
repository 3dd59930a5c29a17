// Files of tests: a folder of its own for each test, and bytes in and out of files.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace tidemark {

// A fresh folder that is gone with the object.
class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "tidemark_io_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A message with the test's folder taken out of its paths.
inline std::string without(const Folder& folder, std::string text) {
  for (size_t at; (at = text.find(folder.path() + "/")) != std::string::npos;)
    text.erase(at, folder.path().size() + 1);
  return text;
}

}  // namespace tidemark
