// The `tidemark` command run as its users run it, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tidemark::tools {

class CommandTest : public testing::Test {
 protected:
  CommandTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("tidemark_command_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  struct Ran {
    int code;
    std::string out, err;
  };
  Ran run(const std::string& arguments) {
    const std::string command = "cd '" + folder_.string() + "' && '" TIDEMARK_COMMAND "' " +
                                arguments + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out.txt"), read("err.txt")};
  }
  std::string read(const std::string& name) {
    std::ifstream in(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_;
};

}  // namespace tidemark::tools
