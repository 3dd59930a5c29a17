// cache to a file: elements stored in a file that is mapped.
//
//   tidemark cache 1\n
//   (f32[784], i32[])\n      what an element is; a zero ends the text
//   ... zeros up to a multiple of 64 bytes
//   element 0, element 1, ...
//
// The tensors of an element follow each other, each at a multiple of 8 bytes, so that one tensor of
// all elements is a strided view. The number of elements follows from the size of the file, which
// is written atomically.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tidemark/api/create.h"
#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"
#include "tidemark/data/kept_rows.h"
#include "tidemark/data/stage.h"
#include "tidemark/io/file.h"
#include "tidemark/io/save.h"
#include "tidemark/types/stored.h"

namespace tidemark::data {
namespace {

constexpr std::string_view kMagic = "tidemark cache 1\n";
constexpr int64_t kPlaceBytes = 8;  // A multiple of every dtype's size.
constexpr size_t kWriteBytes = size_t{1} << 18;

int64_t placed(int64_t bytes) { return (bytes + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes; }

// The layout of a file of elements of one type.
struct Places {
  explicit Places(const Element& element) : types(leaf_types(element)), form(element.form) {
    head = cat(kMagic, text_of(types), "\n", form == nullptr ? "" : form->key);
    head.resize(static_cast<size_t>(granted_bytes(static_cast<int64_t>(head.size()) + 1)));
    for (const LeafType& type : types) {
      tensors.push_back(element_bytes);
      element_bytes += placed(type.size_bytes());
    }
    // Elements without bytes must still be counted.
    element_bytes = std::max(element_bytes, kPlaceBytes);
  }
  bool matches(const Element& element) const {
    return std::equal(types.begin(), types.end(), element.tensors.begin(), element.tensors.end(),
                      [](const LeafType& type, const Tensor& x) { return type.matches(x); }) &&
           (form == nullptr || form->key == element.form->key);
  }

  std::vector<LeafType> types;
  FormPtr form;
  std::string head;
  std::vector<int64_t> tensors;  // Within an element.
  int64_t element_bytes = 0;
};

// One tensor of all elements.
Tensor column(const std::shared_ptr<const io::Mapping>& file, const Places& places, size_t leaf,
              int64_t count, Source at) {
  const LeafType& type = places.types[leaf];
  Shape shape = type.shape;
  shape.insert(0, count);
  return visit_stored(type.dtype, [&]<class T>(T) {
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    const int64_t width = places.element_bytes / size, begin = places.tensors[leaf] / size;
    const auto* data = reinterpret_cast<const T*>(file->data() + places.head.size());
    const Tensor all =
        borrow(std::span(data, static_cast<size_t>(count * width)), {count, width}, [file] {}, at);
    const Slice part{.begin = begin, .end = begin + type.shape.size()};
    return reshape(all[Slices({Index(), part}, at)], shape, at);
  });
}

// Bools in the file must be 0 or 1.
void check_bools(const io::Mapping& file, const Places& places, int64_t count,
                 const io::FileCall& call) {
  for (size_t leaf = 0; leaf < places.types.size(); ++leaf) {
    if (places.types[leaf].dtype != DType::boolean) continue;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = static_cast<int64_t>(places.head.size()) + i * places.element_bytes +
                            places.tensors[leaf];
      const std::byte* bytes = file.data() + begin;
      const std::byte* end = bytes + places.types[leaf].size_bytes();
      const std::byte* wrong =
          std::find_if(bytes, end, [](std::byte b) { return b > std::byte{1}; });
      if (wrong != end) call.bad(wrong - file.data(), "a bool is neither 0 nor 1");
    }
  }
}

class FileCacheStage final : public KeepingStage {
 public:
  FileCacheStage(StagePtr input, std::string path, Source at)
      : KeepingStage("cache(file)", {std::move(input)}, at), path_(std::move(path)) {}

  StageBytes bytes() const override { return states(0, "mapped from " + path_); }

 private:
  KeptRows fill(const Pass& pass) const override {
    const CursorPtr cursor = input().open(pass);
    std::optional<Element> first = cursor->next();
    if (!first) return {};
    const Places places(*first);
    if (::access(path_.c_str(), F_OK) != 0 && errno == ENOENT)
      write(*std::move(first), *cursor, places);
    return found(places);
  }

  void write(Element first, Cursor& rest, const Places& places) const;
  KeptRows found(const Places& places) const;
  void check_head(const io::InputFile& file, const Places& places) const;
  io::FileCall call() const { return {"cache", path_, source()}; }

  std::string path_;
};

void FileCacheStage::write(Element first, Cursor& rest, const Places& places) const {
  io::SavedFile file(call());
  file.write(places.head);
  std::vector<std::byte> waiting;
  std::optional<Element> element = std::move(first);
  for (int64_t number = 0; element; ++number) {
    if (!places.matches(*element))
      throw UserError(
          cat("cache: elements of different types cannot be in one file: element 0 is ",
              text_of(places.types), ", element ", number, " is ", text_of(leaf_types(*element))),
          source(), "make them alike with map first, or cache before batch");
    const size_t begin = waiting.size();
    waiting.resize(begin + static_cast<size_t>(places.element_bytes));
    for (size_t i = 0; i < places.types.size(); ++i)
      tidemark::detail::copy_bytes(element->tensors[i],
                                   waiting.data() + begin + static_cast<size_t>(places.tensors[i]),
                                   source());
    element.reset();
    if (waiting.size() >= kWriteBytes) {
      file.write(waiting);
      waiting.clear();
    }
    element = rest.next();
  }
  file.write(waiting);
  file.commit();
}

// The header must equal the one that would be written now.
void FileCacheStage::check_head(const io::InputFile& file, const Places& places) const {
  const auto size = static_cast<int64_t>(places.head.size());
  std::string head(static_cast<size_t>(std::min(size, file.bytes())), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  if (!head.starts_with(kMagic))
    file.call().refuse("exists and is not a cache of a dataset", "give another path");
  if (head == places.head) return;
  const size_t end = head.find('\n', kMagic.size());
  const std::string held = head.substr(kMagic.size(), end - kMagic.size());
  const bool is_text =
      std::all_of(held.begin(), held.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (end == std::string::npos || !is_text)
    file.call().refuse("is a damaged cache of a dataset", "delete it; it will be written again");
  file.call().refuse(cat("holds elements ", held, ", this dataset gives ", text_of(places.types)),
                     "delete it if the dataset has changed, or give another path");
}

KeptRows FileCacheStage::found(const Places& places) const {
  const io::InputFile file(call());
  check_head(file, places);
  const int64_t bytes = file.bytes() - static_cast<int64_t>(places.head.size());
  const int64_t count = bytes / places.element_bytes;
  const int64_t wanted = input().count().value_or(count);
  if (count * places.element_bytes != bytes || count != wanted)
    file.call().refuse(cat("holds ", count, " elements, this dataset gives ", wanted),
                       "delete it if the dataset has changed, or give another path");
  const auto mapping = file.map();
  file.check_size();
  check_bools(*mapping, places, count, file.call());
  Element columns{{}, places.form};
  for (size_t leaf = 0; leaf < places.types.size(); ++leaf)
    columns.tensors.push_back(column(mapping, places, leaf, count, source()));
  KeptRows rows;
  rows.add(std::move(columns), count, source());
  return rows;
}

}  // namespace

StagePtr cached_in_file(StagePtr input, std::string path, Source at) {
  if (input->count() == kEndless)
    throw UserError("cache: the elements before it never end", at,
                    "put cache before repeat(), or limit the elements with take()");
  return std::make_shared<FileCacheStage>(std::move(input), std::move(path), at);
}

}  // namespace tidemark::data
