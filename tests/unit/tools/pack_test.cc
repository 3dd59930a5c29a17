#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tidemark::tools {
namespace {

namespace fs = std::filesystem;

// Runs `tidemark pack` in a folder of its own.
class Pack : public testing::Test {
 protected:
  Pack() : folder_(fs::temp_directory_path() / ("tidemark_pack_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Pack() override { fs::remove_all(folder_); }

  struct Ran {
    int code;
    std::string out, err;
  };
  Ran pack(const std::string& arguments) {
    const std::string command = "cd '" + folder_.string() + "' && '" TIDEMARK_COMMAND "' pack " +
                                arguments + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out.txt"), read("err.txt")};
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) {
    std::ifstream in(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool exists(const std::string& name) { return fs::exists(folder_ / name); }
  // What lies in the folder besides the two files that `pack` above makes itself.
  int files() {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++count;
    return count - 2;
  }

  fs::path folder_;
};

// Four bytes each; a and c share a place.
constexpr const char* kThree = "id,lower,upper,size\na,0,3,4\nb,0,6,4\nc,3,6,4\n";

// The text before the line that tells the time.
std::string without_seconds(const std::string& text) {
  return text.substr(0, text.find("seconds"));
}

TEST_F(Pack, PrintsWhatItFound) {
  write("in.csv", kThree);
  const Ran ran = pack("in.csv");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(without_seconds(ran.out),
            "buffers   3\n"
            "load      8 (8 B)\n"
            "tidemark  8 (8 B)\n"
            "ratio     1.0000\n"
            "least     proven: it equals the load\n");
  EXPECT_EQ(ran.err, "");
}

TEST_F(Pack, PrintsJson) {
  write("in.csv", kThree);
  const Ran ran = pack("in.csv --json --capacity 8");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with(
      R"({"buffers": 3, "load": 8, "tidemark": 8, "ratio": 1.000000, "lower_bound": 8, )"
      R"("proven_least": true, "proof": "load", "capacity": 8, "fits": true, "seconds": )"))
      << ran.out;
}

TEST_F(Pack, ExitsWithOneIfItDoesNotFit) {
  write("in.csv", kThree);
  const Ran ran = pack("in.csv --capacity 7");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("fits      no, capacity 7\n"), std::string::npos) << ran.out;
}

TEST_F(Pack, WritesOffsetsAndAPicture) {
  write("in.csv", kThree);
  EXPECT_EQ(pack("in.csv --output out.csv --picture out.svg").code, 0);
  const std::string csv = read("out.csv");
  EXPECT_TRUE(csv.starts_with("id,lower,upper,size,offset\na,0,3,4,")) << csv;
  const std::string svg = read("out.svg");
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("<title>a: 4 bytes at "), std::string::npos);
  EXPECT_EQ(files(), 3);
}

TEST_F(Pack, LeavesNothingBehindOnBadInput) {
  write("in.csv", "id,lower,upper,size\na,0,3,4\nb,6,6,4\n");
  const Ran ran = pack("in.csv --output out.csv --picture out.svg");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "tidemark: in.csv:3:5: upper must be greater than lower: 6 after 6\n");
  EXPECT_EQ(files(), 1);
}

TEST_F(Pack, LeavesAnOlderOutputAloneIfItCannotFinish) {
  write("in.csv", kThree);
  write("out.csv", "older");
  const Ran ran = pack("in.csv --output out.csv --picture missing/out.svg");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "tidemark: pack: cannot write 'missing/out.svg': No such file or directory\n");
  EXPECT_EQ(read("out.csv"), "older");
  EXPECT_EQ(files(), 2);
}

TEST_F(Pack, WritesThroughSymbolicLinks) {
  write("in.csv", kThree);
  fs::create_directories(folder_ / "far");
  write("far/out.csv", "older");
  fs::create_symlink("far/out.csv", folder_ / "near.csv");
  fs::create_symlink("near.csv", folder_ / "link.csv");
  fs::create_symlink("far/new.svg", folder_ / "new.svg");
  EXPECT_EQ(pack("in.csv --output link.csv --picture new.svg").code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.csv"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "near.csv"));
  EXPECT_TRUE(read("far/out.csv").starts_with("id,lower,upper,size,offset\n"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "new.svg"));
  EXPECT_TRUE(read("far/new.svg").starts_with("<svg "));
}

TEST_F(Pack, WritesIntoWhatIsNoFile) {
  write("in.csv", kThree);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  // Opened for both, so that neither side waits for the other.
  const int pipe = open((folder_ / "pipe").c_str(), O_RDWR);
  ASSERT_GE(pipe, 0);
  EXPECT_EQ(pack("in.csv --output pipe").code, 0);
  char text[256] = {};
  EXPECT_GT(::read(pipe, text, sizeof(text) - 1), 0);
  close(pipe);
  EXPECT_TRUE(std::string(text).starts_with("id,lower,upper,size,offset\n")) << text;
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(files(), 2);
}

TEST_F(Pack, SaysWhyItCannotWriteIntoWhatIsNoFile) {
  write("in.csv", kThree);
  // By way of a link of its own, which is what would be lost.
  fs::create_symlink("/dev/full", folder_ / "full");
  const Ran full = pack("in.csv --output full");
  EXPECT_EQ(full.code, 2);
  EXPECT_EQ(full.err, "tidemark: pack: cannot write 'full': No space left on device\n");
  EXPECT_EQ(fs::read_symlink(folder_ / "full"), "/dev/full");
  fs::create_directories(folder_ / "folder");
  const Ran folder = pack("in.csv --output folder");
  EXPECT_EQ(folder.code, 2);
  EXPECT_EQ(folder.err, "tidemark: pack: cannot write 'folder': Is a directory\n");
}

TEST_F(Pack, RefusesOffsetsThatItWouldReplace) {
  write("in.csv", "id,lower,upper,size,offset\na,0,3,4,64\n");
  const Ran ran = pack("in.csv --output out.csv");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "tidemark: in.csv:1:21: there is a column 'offset' already; the result adds this "
            "column\n");
  EXPECT_FALSE(exists("out.csv"));
}

TEST_F(Pack, ReadsOnlyAsMuchGarbageAsItMust) {
  const Ran ran = pack("/dev/zero --output out.csv");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "tidemark: /dev/zero:1:65537: the line is longer than 65536 bytes\n");
  EXPECT_FALSE(exists("out.csv"));
}

TEST_F(Pack, ExplainsItself) {
  EXPECT_EQ(pack("--help").code, 0);
  EXPECT_EQ(pack("").err,
            "tidemark: pack: expected a file\n  tidemark pack --help lists the options\n");
  EXPECT_EQ(pack("a b").err,
            "tidemark: pack: expected one file, got 'a' and 'b'\n  tidemark pack --help lists the "
            "options\n");
  EXPECT_EQ(pack("a --capacity x").err,
            "tidemark: pack: --capacity needs a number, not 'x'\n"
            "  tidemark pack --help lists the options\n");
  EXPECT_EQ(
      pack("a --fast").err,
      "tidemark: pack: there is no option '--fast'\n  tidemark pack --help lists the options\n");
  EXPECT_EQ(pack("absent.csv").err,
            "tidemark: pack: cannot open 'absent.csv': No such file or directory\n");
  EXPECT_EQ(pack("absent.csv").code, 2);
}

}  // namespace
}  // namespace tidemark::tools
