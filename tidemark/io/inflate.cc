#include "tidemark/io/inflate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace tidemark::io {
namespace {

constexpr int kMostBits = 15;  // Of a code.
constexpr int kFastBits = 10;  // Codes up to this length are found by one lookup.
constexpr int kMostSymbols = 288;
constexpr size_t kReach = 32768;             // How far back a match may lie.
constexpr size_t kWindowBytes = 2 * kReach;  // Its last half stays when it is flushed.
constexpr size_t kInputBytes = 32768;

// A prefix code, by the lengths of its symbols: codes of one length are consecutive numbers, in the
// order of symbols, and shorter ones come before longer ones.
class Code {
 public:
  // False if no prefix code has these lengths. An incomplete code is allowed only with a single
  // symbol, as in blocks with one distance.
  bool make(std::span<const uint8_t> lengths) {
    counts_.fill(0);
    fast_.fill(0);
    for (const uint8_t length : lengths) ++counts_[length];
    int left = 1;
    for (int length = 1; length <= kMostBits; ++length) {
      left = 2 * left - counts_[static_cast<size_t>(length)];
      if (left < 0) return false;
    }
    place_symbols(lengths);
    make_fast(lengths);
    const auto used = static_cast<int>(lengths.size()) - counts_[0];
    return left == 0 || (used == counts_[1] && used <= 1);
  }

  struct Symbol {
    int symbol;
    int length;  // 0: no code has this prefix.
  };
  // The symbol whose code begins at the lowest of these bits.
  Symbol find(uint64_t bits) const {
    const uint16_t entry = fast_[bits & ((1U << kFastBits) - 1)];
    if (entry != 0) return {entry >> 4, entry & 15};
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kMostBits; ++length) {
      code |= static_cast<int>(bits >> (length - 1) & 1);
      const int count = counts_[static_cast<size_t>(length)];
      if (code - first < count)
        return {symbols_[static_cast<size_t>(index + code - first)], length};
      index += count;
      first = 2 * (first + count);
      code *= 2;
    }
    return {0, 0};
  }

 private:
  void place_symbols(std::span<const uint8_t> lengths) {
    std::array<uint16_t, kMostBits + 2> next = {};
    for (size_t length = 1; length <= kMostBits; ++length)
      next[length + 1] = static_cast<uint16_t>(next[length] + counts_[length]);
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol] != 0) symbols_[next[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
  }

  // Fills every entry whose low bits are a code, bit-reversed as in the stream.
  void make_fast(std::span<const uint8_t> lengths) {
    std::array<unsigned, kMostBits + 2> next = {};
    for (size_t length = 1; length <= kMostBits; ++length)
      next[length + 1] = 2 * (next[length] + static_cast<unsigned>(counts_[length]));
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      const unsigned length = lengths[symbol];
      if (length == 0) continue;
      const unsigned code = next[length]++;
      if (length > kFastBits) continue;
      unsigned turned = 0;
      for (unsigned bit = 0; bit < length; ++bit) turned |= (code >> bit & 1) << (length - 1 - bit);
      for (unsigned at = turned; at < fast_.size(); at += 1U << length)
        fast_[at] = static_cast<uint16_t>(symbol << 4 | length);
    }
  }

  std::array<int, kMostBits + 1> counts_ = {};
  std::array<uint16_t, kMostSymbols> symbols_ = {};
  std::array<uint16_t, 1 << kFastBits> fast_ = {};  // Symbol * 16 + length; 0: not here.
};

class Inflater {
 public:
  Inflater(const ByteSource& source, const ByteSink& sink, int64_t offset, const FileCall& call)
      : source_(source), sink_(sink), offset_(offset), call_(call) {}

  int64_t run() {
    bool last = false;
    while (!last && !enough_) {
      last = take(1) != 0;
      switch (take(2)) {
        case 0:
          copy_stored();
          break;
        case 1:
          make_fixed_codes();
          read_matches();
          break;
        case 2:
          read_codes();
          read_matches();
          break;
        default:
          bad("a block has an unknown type");
      }
    }
    give_away();
    return used();
  }

 private:
  int64_t used() const { return read_ - static_cast<int64_t>(input_end_ - input_at_) - bits_ / 8; }
  [[noreturn]] void bad(const char* problem) const {
    call_.bad(offset_ + used(), cat("the deflated bytes are damaged: ", problem));
  }

  // ---- bits -------------------------------------------------------------------------------------

  // Refills the word with as many bits as fit.
  void fill() {
    if (input_end_ - input_at_ >= sizeof(word_)) return fill_at_once();
    while (bits_ <= 56 && have_input()) {
      word_ |= std::to_integer<uint64_t>(input_[input_at_++]) << bits_;
      bits_ += 8;
    }
  }
  // Reads eight bytes; only whole bytes that fit are counted. The bits above them are already in
  // the word, and will be read again with the same value.
  void fill_at_once() {
    uint64_t next = 0;
    std::memcpy(&next, input_.get() + input_at_, sizeof(next));
    word_ |= next << bits_;
    const int bytes = (63 - bits_) / 8;
    input_at_ += static_cast<size_t>(bytes);
    bits_ += 8 * bytes;
  }
  bool have_input() {
    if (input_at_ < input_end_) return true;
    if (ended_) return false;
    input_at_ = 0;
    input_end_ = source_({input_.get(), kInputBytes});
    read_ += static_cast<int64_t>(input_end_);
    ended_ = input_end_ == 0;
    return !ended_;
  }
  void drop(int count) {
    word_ >>= count;
    bits_ -= count;
  }
  unsigned take(int count) {
    if (bits_ < count) fill();
    if (bits_ < count) bad("they end inside a block");
    const auto taken = static_cast<unsigned>(word_ & ((uint64_t{1} << count) - 1));
    drop(count);
    return taken;
  }
  int symbol(const Code& code) {
    if (bits_ < kMostBits) fill();
    const Code::Symbol found = code.find(word_);
    if (found.length > bits_) bad("they end inside a block");
    if (found.length == 0) bad("a code has no symbol");
    drop(found.length);
    return found.symbol;
  }

  // ---- what comes out ---------------------------------------------------------------------------

  void give_away() {
    if (!enough_ && at_ > given_) enough_ = !sink_({window_.get() + given_, at_ - given_});
    given_ = at_;
  }
  // Room for `count` more bytes.
  void make_room(size_t count) {
    if (at_ + count <= kWindowBytes) return;
    give_away();
    std::memmove(window_.get(), window_.get() + at_ - kReach, kReach);
    at_ = given_ = kReach;
    reach_ = kReach;
  }
  void put(std::byte byte) {
    make_room(1);
    window_[at_++] = byte;
  }
  void put_match(size_t length, size_t distance) {
    // Until the window is full it holds everything that was written.
    if (distance > (reach_ == kReach ? kReach : at_))
      bad("a match reaches before the beginning of the data");
    make_room(length);
    for (size_t i = 0; i < length; ++i, ++at_) window_[at_] = window_[at_ - distance];
  }

  // ---- blocks -----------------------------------------------------------------------------------

  void copy_stored() {
    drop(bits_ % 8);
    const unsigned length = take(16);
    if (take(16) != (length ^ 0xffffU))
      bad("the length of a stored block and its complement differ");
    for (unsigned i = 0; i < length && !enough_; ++i) put(static_cast<std::byte>(take(8)));
  }

  void make_fixed_codes() {
    std::array<uint8_t, kMostSymbols> lengths = {};
    std::fill(lengths.begin(), lengths.begin() + 144, 8);
    std::fill(lengths.begin() + 144, lengths.begin() + 256, 9);
    std::fill(lengths.begin() + 256, lengths.begin() + 280, 7);
    std::fill(lengths.begin() + 280, lengths.end(), 8);
    literals_.make(lengths);
    std::array<uint8_t, 32> distances = {};
    distances.fill(5);
    distances_.make(distances);
  }

  // The block contains the lengths of both codes, which are themselves encoded.
  void read_codes() {
    constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const size_t literals = take(5) + 257, distances = take(5) + 1, count = take(4) + 4;
    if (literals > 286 || distances > 30) bad("a block has too many codes");
    std::array<uint8_t, 19> of_lengths = {};
    for (size_t i = 0; i < count; ++i) of_lengths[kOrder[i]] = static_cast<uint8_t>(take(3));
    Code code;
    if (!code.make(of_lengths)) bad("the codes of a block are not a prefix code");
    std::array<uint8_t, 286 + 30> lengths = {};
    read_lengths(code, std::span(lengths).first(literals + distances));
    if (lengths[256] == 0) bad("a block has no code for its end");
    if (!literals_.make(std::span(lengths).first(literals)) ||
        !distances_.make(std::span(lengths).subspan(literals, distances)))
      bad("the codes of a block are not a prefix code");
  }

  void read_lengths(const Code& code, std::span<uint8_t> lengths) {
    for (size_t i = 0; i < lengths.size();) {
      const int found = symbol(code);
      if (found < 16) {
        lengths[i++] = static_cast<uint8_t>(found);
        continue;
      }
      if (found == 16 && i == 0) bad("a repeat code has no length before it");
      const uint8_t value = found == 16 ? lengths[i - 1] : 0;
      const size_t times = found == 16 ? 3 + take(2) : found == 17 ? 3 + take(3) : 11 + take(7);
      if (times > lengths.size() - i) bad("a block has too many codes");
      std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(i), times, value);
      i += times;
    }
  }

  void read_matches() {
    constexpr uint16_t kLengths[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                     15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                     67, 83, 99, 115, 131, 163, 195, 227, 258};
    constexpr uint8_t kLengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    constexpr uint16_t kDistances[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (!enough_) {
      const int found = symbol(literals_);
      if (found == 256) return;
      if (found < 256) {
        put(static_cast<std::byte>(found));
        continue;
      }
      const auto row = static_cast<size_t>(found - 257);
      if (row >= std::size(kLengths)) bad("a match has no length");
      const size_t length = kLengths[row] + take(kLengthBits[row]);
      const auto place = static_cast<size_t>(symbol(distances_));
      if (place >= std::size(kDistances)) bad("a match has no distance");
      const int more = place < 4 ? 0 : static_cast<int>(place / 2 - 1);
      put_match(length, kDistances[place] + take(more));
    }
  }

  const ByteSource& source_;
  const ByteSink& sink_;
  int64_t offset_;
  const FileCall& call_;

  // Not zeroed, which would dominate the cost of a small member.
  std::unique_ptr<std::byte[]> input_ = std::make_unique_for_overwrite<std::byte[]>(kInputBytes);
  size_t input_at_ = 0, input_end_ = 0;
  int64_t read_ = 0;
  bool ended_ = false;
  uint64_t word_ = 0;  // The next bits, lowest first; bits_ of them are valid.
  int bits_ = 0;

  std::unique_ptr<std::byte[]> window_ = std::make_unique_for_overwrite<std::byte[]>(kWindowBytes);
  size_t at_ = 0, given_ = 0;  // The position of the next byte, and how much the sink has received.
  size_t reach_ = 0;           // kReach once the window was full.
  bool enough_ = false;

  Code literals_, distances_;
};

}  // namespace

int64_t inflate(const ByteSource& source, const ByteSink& sink, int64_t offset,
                const FileCall& call) {
  return Inflater(source, sink, offset, call).run();
}

}  // namespace tidemark::io
