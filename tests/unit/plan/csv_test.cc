#include "tidemark/plan/csv.h"

#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>

namespace tidemark::plan {
namespace {

CsvProblem read(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "f.csv");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const CsvError& error) {
    return error.what();
  }
  return "none";
}

TEST(Csv, ReadsColumnsInAnyOrder) {
  const CsvProblem csv =
      read("size,note,upper,id,lower,alignment\n4096,x,12,w,0,64\n8,y,3,v,-1,1\n");
  ASSERT_EQ(csv.problem.buffers.size(), 2U);
  EXPECT_EQ(csv.ids[0], "w");
  EXPECT_EQ(csv.problem.buffers[0].size_bytes, 4096);
  EXPECT_EQ(csv.problem.buffers[0].lifetime.end, 12);
  EXPECT_EQ(csv.problem.buffers[0].alignment, 64);
  EXPECT_EQ(csv.problem.buffers[1].lifetime.begin, -1);
}

TEST(Csv, ReadsWhatOtherToolsWrite) {
  EXPECT_EQ(read("\xef\xbb\xbfid,lower,upper,size\r\na,0,1,2\r\n\r\n\n").problem.buffers.size(),
            1U);
  EXPECT_EQ(read("id,lower,upper,size\na,0,1,2").problem.buffers.size(), 1U);
  EXPECT_EQ(read("id,lower,upper,size\n").problem.buffers.size(), 0U);
}

TEST(Csv, AddsTheOffsets) {
  auto written = [](const std::string& text) {
    std::ostringstream out;
    write_csv(out, read(text), {{7}, 9});
    return out.str();
  };
  EXPECT_EQ(written("id,lower,upper,size\na,0,1,2\n"), "id,lower,upper,size,offset\na,0,1,2,7\n");
}

TEST(Csv, SaysWhereAndWhat) {
  const std::string header = "id,lower,upper,size\n";
  EXPECT_EQ(error_of(""), "f.csv:1:1: the file is empty; the first line names the columns");
  EXPECT_EQ(error_of("id,lower,size\n"),
            "f.csv:1:1: there is no column 'upper'; the first line must name id, lower, upper and "
            "size");
  EXPECT_EQ(error_of("id,offset,lower,upper,size\na,5,0,1,2\n"),
            "f.csv:1:4: there is a column 'offset' already; the result adds this column");
  EXPECT_EQ(error_of("id,lower,upper,size,lower\n"), "f.csv:1:21: there are two columns 'lower'");
  EXPECT_EQ(error_of(header + "a,0,1,-5\n"), "f.csv:2:7: size is negative: -5");
  EXPECT_EQ(error_of(header + "a,0,1,5\nb,4,4,1\n"),
            "f.csv:3:5: upper must be greater than lower: 4 after 4");
  EXPECT_EQ(error_of(header + "a,0,1,5\na,2,3,1\n"), "f.csv:3:1: id 'a' was used before");
  EXPECT_EQ(error_of(header + "a,0,1,9223372036854775808\n"),
            "f.csv:2:7: size does not fit 64 bits: '9223372036854775808'");
  EXPECT_EQ(error_of(header + "a,0,1,9223372036854775807\n"),
            "f.csv:2:7: the sizes up to here add up to more than 64 bits hold");
  EXPECT_EQ(error_of(header + "a,0,1,1e6\n"), "f.csv:2:7: size is not a whole number: '1e6'");
  EXPECT_EQ(error_of(header + "a,,1,6\n"), "f.csv:2:3: lower is not a whole number: ''");
  EXPECT_EQ(error_of(header + ",0,1,6\n"), "f.csv:2:1: id is empty");
  EXPECT_EQ(error_of(header + "a,0,1\n"),
            "f.csv:2:6: there are 3 fields where the first line names 4");
  EXPECT_EQ(error_of(header + "a,0,1,2,3\n"),
            "f.csv:2:9: there are 5 fields where the first line names 4");
  EXPECT_EQ(error_of(header + "\na,0,1,2\n"), "f.csv:3:1: there is an empty line before this one");
  EXPECT_EQ(error_of("id,lower,upper,size,alignment\na,0,1,2,0\n"),
            "f.csv:2:9: alignment must be at least 1: 0");
  EXPECT_EQ(error_of(header + "a,\x01\x02\xff,1,2\n"),
            "f.csv:2:3: lower is not a whole number: '\?\?\?'");
}

// An endless input of one byte, which counts what is taken from it.
class Endless : public std::streambuf {
 public:
  explicit Endless(char byte) : block_(4096, byte) {}
  int64_t taken() const { return taken_; }

 protected:
  int_type underflow() override {
    taken_ += std::ssize(block_);
    setg(block_.data(), block_.data(), block_.data() + block_.size());
    return traits_type::to_int_type(block_[0]);
  }

 private:
  std::string block_;
  int64_t taken_ = 0;
};

TEST(Csv, GivesUpOnEndlessGarbageAtOnce) {
  for (char byte : {'x', '\0', '\n', ',', '\xff'}) {
    Endless garbage(byte);
    std::istream in(&garbage);
    EXPECT_THROW(read_csv(in, "f.csv"), CsvError);
    EXPECT_LT(garbage.taken(), 1 << 20);
  }
  EXPECT_EQ(error_of("id,lower,upper,size\n" + std::string(100'000, 'x')),
            "f.csv:2:65537: the line is longer than 65536 bytes");
}

}  // namespace
}  // namespace tidemark::plan
