// text_lines: the lines of files. Each is a view of the file's bytes, which are mapped, or were
// inflated.
#include <algorithm>
#include <cstring>

#include "tidemark/api/extend.h"
#include "tidemark/data/read_file.h"
#include "tidemark/data/stage.h"

namespace tidemark::data {
namespace {

class LinesStage final : public Stage {
 public:
  LinesStage(const std::vector<std::string>& paths, Source at) : Stage("text_lines", {}, at) {
    for (const std::string& path : paths) {
      files_.push_back(content_tensor({"text_lines", path, at}));
      add_lines(files_.size() - 1);
    }
  }

  CursorPtr open(const Pass& pass) const override {
    return std::make_unique<IndexCursor>(*this, pass);
  }
  std::optional<int64_t> count() const override { return static_cast<int64_t>(lines_.size()); }
  bool by_index() const override { return true; }
  Element at(int64_t index, const Pass&) const override {
    const Line& line = lines_[static_cast<size_t>(index)];
    const Slice part{.begin = line.begin, .end = line.end};
    return {{files_[line.file][Slices({part}, source())]}, {}};
  }
  std::optional<ElementType> type() const override {
    return ElementType{{{DType::u8, {longest_}}}, 0};
  }
  std::optional<Element> sample() const override {
    if (lines_.empty()) return std::nullopt;
    return at(0, {});
  }
  // An inflated file is held as long as the dataset, and so is the table of lines.
  StageBytes bytes() const override {
    return states(0, cat("views of the files, ", lines_.size(), " lines"));
  }

 private:
  struct Line {
    size_t file = 0;
    int64_t begin = 0, end = 0;
  };
  void add_lines(size_t file) {
    const int64_t size = files_[file].shape()[0];
    if (size == 0) return;
    const std::byte* const bytes = tidemark::detail::dense_bytes(files_[file], source());
    for (int64_t begin = 0; begin < size;) {
      const void* const found = std::memchr(bytes + begin, '\n', static_cast<size_t>(size - begin));
      const int64_t next =
          found == nullptr ? size : static_cast<const std::byte*>(found) - bytes + 1;
      int64_t end = found == nullptr ? size : next - 1;
      if (end > begin && bytes[end - 1] == std::byte{'\r'}) --end;
      lines_.push_back({file, begin, end});
      longest_ = std::max(longest_, end - begin);
      begin = next;
    }
  }

  std::vector<Tensor> files_;
  std::vector<Line> lines_;
  int64_t longest_ = 0;
};

}  // namespace

StagePtr lines_of(const std::vector<std::string>& paths, Source at) {
  const SourceScope scope(at);
  return std::make_shared<LinesStage>(paths, at);
}

}  // namespace tidemark::data
