#include "tests/programs/run_program.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tidemark/base/error.h"
#include "tidemark/plan/check.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::testing {
namespace {

int64_t page_bytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}
int64_t whole_pages(int64_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Pages that cannot be touched, but for those that are opened.
class Pages {
 public:
  explicit Pages(int64_t bytes) : bytes_(static_cast<size_t>(whole_pages(bytes) + page_bytes())) {
    void* const mapped =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TIDEMARK_CHECK(mapped != MAP_FAILED, "no address space for ", bytes_, " bytes");
    data_ = static_cast<std::byte*>(mapped);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }
  // Opens the pages of [offset, offset + bytes) and fills them with rubbish.
  void open(int64_t offset, int64_t bytes, uint64_t rubbish) {
    if (bytes == 0) return;
    const int64_t first = offset / page_bytes() * page_bytes();
    const int64_t length = whole_pages(offset + bytes - first);
    const int done = mprotect(data_ + first, static_cast<size_t>(length), PROT_READ | PROT_WRITE);
    TIDEMARK_CHECK(done == 0, "pages cannot be opened");
    for (int64_t i = 0; i < length; i += 8) {
      const uint64_t word = (static_cast<uint64_t>(first + i) + rubbish) * 0x9e3779b97f4a7c15ULL;
      std::memcpy(data_ + first + i, &word, 8);
    }
  }

 private:
  size_t bytes_;
  std::byte* data_;
};

// As many bytes as asked for, ending where what follows cannot be touched.
class Block {
 public:
  Block(int64_t bytes, uint64_t rubbish) : pages_(bytes), offset_(whole_pages(bytes) - bytes) {
    pages_.open(offset_, bytes, rubbish);
  }
  std::byte* data() const { return pages_.data() + offset_; }

 private:
  Pages pages_;
  int64_t offset_;
};

// Every buffer in pages of its own: its last byte is the last of a page, and the next page cannot
// be touched. The bodies of maps are laid out so too, each for itself.
class Guarded {
 public:
  explicit Guarded(const run::Program& from) : program_(from) {}

  // Offsets and sizes of arenas other than planned. Tasks stay the program's.
  int64_t lay_out(std::vector<int64_t>& offsets, std::vector<run::Map>& maps) {
    offsets.assign(program_.buffers.size(), 0);
    maps = program_.maps;
    sizes_.resize(program_.maps.size() + 1);
    for (auto arena = static_cast<int32_t>(program_.maps.size()); arena >= 0; --arena) {
      int64_t end = page_bytes();
      for (size_t i = 0; i < program_.buffers.size(); ++i) {
        if (program_.buffers[i].arena != arena) continue;
        const int64_t bytes = bytes_of(i, maps);
        end += whole_pages(bytes);
        offsets[i] = end - bytes;
        end += page_bytes();
      }
      sizes_[static_cast<size_t>(arena)] = end;
      if (arena > 0) maps[static_cast<size_t>(arena - 1)].arenas[0].bytes = end;
    }
    return sizes_[0];
  }

  void open(Pages& pages, const std::vector<int64_t>& offsets, const std::vector<run::Map>& maps,
            int32_t arena, int64_t base) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].arena != arena) continue;
      const run::Map* const map = map_in(i, maps);
      if (map == nullptr) {
        pages.open(base + offsets[i], program_.buffers[i].bytes, 77);
        continue;
      }
      for (int64_t k = 0; k < map->alive; ++k)
        open(pages, offsets, maps, map->arena, base + offsets[i] + k * map->arenas[0].bytes);
    }
  }

 private:
  // The map whose bodies' arenas the buffer is, or null.
  static const run::Map* map_in(size_t buffer, const std::vector<run::Map>& maps) {
    for (const run::Map& map : maps)
      if (map.arenas[0].arenas.buffer == static_cast<int32_t>(buffer)) return &map;
    return nullptr;
  }
  int64_t bytes_of(size_t buffer, const std::vector<run::Map>& maps) const {
    const run::Map* const map = map_in(buffer, maps);
    return map == nullptr ? program_.buffers[buffer].bytes : map->arenas[0].bytes * map->alive;
  }

  const run::Program& program_;
  std::vector<int64_t> sizes_;
};

Tensor copy_of(const std::byte* from, DType dtype, const Shape& shape) {
  Tensor copy = detail::make_tensor(dtype, shape, Source::none());
  const auto bytes = static_cast<size_t>(shape.size() * size_of(dtype));
  if (bytes > 0) std::memcpy(detail::array_of(copy, Source::none()).data, from, bytes);
  return copy;
}

// While it exists, a program lies elsewhere than planned.
class Moved {
 public:
  Moved(run::Program& program, std::vector<int64_t> offsets, std::vector<run::Map> maps)
      : program_(program), offsets_(std::move(offsets)), maps_(std::move(maps)) {
    exchange();
  }
  ~Moved() { exchange(); }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

 private:
  void exchange() {
    std::swap(program_.offsets, offsets_);
    std::swap(program_.maps, maps_);
  }
  run::Program& program_;
  std::vector<int64_t> offsets_;
  std::vector<run::Map> maps_;
};

Outcome run_in(const run::Program& program, const std::vector<Tensor>& arguments, std::byte* arena,
               uint64_t rubbish) {
  std::vector<std::byte*> registers(static_cast<size_t>(program.registers));
  registers[run::kArena] = arena;
  std::vector<std::unique_ptr<Block>> blocks;
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    // An argument may be a part of an array: what is behind its last element is not its own.
    const Tensor& given = arguments[i];
    const int64_t bytes = given.size() * size_of(given.dtype());
    blocks.push_back(std::make_unique<Block>(bytes, rubbish));
    registers[1 + i] = blocks.back()->data();
    if (bytes > 0)
      std::memcpy(registers[1 + i], detail::array_of(given, Source::none()).data,
                  static_cast<size_t>(bytes));
  }
  for (size_t k = 0; k < program.results.size(); ++k) {
    const run::Result& result = program.results[k];
    std::byte*& place =
        registers[static_cast<size_t>(program.result_register(static_cast<int32_t>(k)))];
    if (result.parameter >= 0) {
      place = registers[static_cast<size_t>(1 + result.parameter)];
    } else {
      blocks.push_back(std::make_unique<Block>(result.bytes, rubbish));
      place = blocks.back()->data();
    }
  }
  // Registers that loops move start on page 0, where nothing can be read.
  std::vector<std::byte*> moved = registers;
  run::execute(program, moved);
  Outcome outcome;
  for (size_t k = 0; k < program.results.size(); ++k)
    outcome.results.push_back(
        copy_of(registers[static_cast<size_t>(program.result_register(static_cast<int32_t>(k)))],
                program.results[k].dtype, program.results[k].shape));
  for (size_t i = 0; i < program.parameters.size(); ++i)
    outcome.parameters.push_back(
        copy_of(registers[1 + i], program.parameters[i].dtype, program.parameters[i].shape));
  return outcome;
}

}  // namespace

Outcome run_program(run::Program& program, const std::vector<Tensor>& arguments, Memory memory) {
  if (memory != Memory::guarded) {
    const uint64_t rubbish = memory == Memory::planned ? 1 : 12345;
    const Block arena(program.arena_bytes, rubbish);
    return run_in(program, arguments, arena.data(), rubbish);
  }
  std::vector<int64_t> offsets;
  std::vector<run::Map> maps;
  Guarded guarded(program);
  Pages pages(guarded.lay_out(offsets, maps));
  guarded.open(pages, offsets, maps, 0, 0);
  const Moved elsewhere(program, std::move(offsets), std::move(maps));
  return run_in(program, arguments, pages.data(), 3);
}

std::string placement_fault(const run::Program& program) {
  for (int32_t arena = 0; arena <= static_cast<int32_t>(program.maps.size()); ++arena) {
    plan::Problem problem;
    plan::Placement placement;
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const run::Buffer& buffer = program.buffers[i];
      if (buffer.arena != arena) continue;
      problem.buffers.push_back(
          {.lifetime = {buffer.lower, buffer.upper}, .size_bytes = buffer.bytes});
      placement.offsets.push_back(program.offsets[i]);
    }
    placement.tidemark_bytes = arena == 0
                                   ? program.arena_bytes
                                   : program.maps[static_cast<size_t>(arena - 1)].arenas[0].bytes;
    if (const auto fault = plan::check_placement(problem, placement))
      return cat("arena ", arena, ": ", fault->text());
  }
  return "";
}

}  // namespace tidemark::testing
