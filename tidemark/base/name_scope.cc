// Paths are stored for the life of the process and found without a lock, since each layer of a
// model opens its scope at every call.
#include "tidemark/base/name_scope.h"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"

namespace tidemark {
namespace {

struct Layer {
  std::string path;
  size_t name_at = 0;  // Where its own name begins in the path.
  uint32_t parent = 0;
  uint32_t number = 0;
  const Layer* next = nullptr;  // Of the same bucket.

  std::string_view name() const { return std::string_view(path).substr(name_at); }
};

constexpr size_t kBuckets = 4096;
constinit std::array<std::atomic<const Layer*>, kBuckets> buckets = {};
constinit std::array<std::atomic<const Layer*>, detail::kMostLayers> by_number = {};
constinit uint32_t count = 0;  // Guarded by `adding`.
constinit Mutex adding;

const Layer* find(const Layer* first, uint32_t parent, std::string_view name) {
  for (const Layer* layer = first; layer != nullptr; layer = layer->next)
    if (layer->parent == parent && layer->name() == name) return layer;
  return nullptr;
}

uint32_t numbered(uint32_t parent, std::string_view name) {
  auto& bucket = buckets[(std::hash<std::string_view>()(name) + parent * 0x9e3779b9) % kBuckets];
  if (const Layer* known = find(bucket.load(std::memory_order_acquire), parent, name))
    return known->number;
  const std::lock_guard lock(adding);
  const Layer* const first = bucket.load(std::memory_order_relaxed);
  if (const Layer* known = find(first, parent, name)) return known->number;
  if (count + 1 == detail::kMostLayers) return parent;
  std::string path(detail::layer_path(parent));
  if (!path.empty()) path += '/';
  const size_t name_at = path.size();
  const auto* const made = new Layer{path.append(name), name_at, parent, ++count, first};
  by_number[made->number].store(made, std::memory_order_release);
  bucket.store(made, std::memory_order_release);
  return made->number;
}

}  // namespace

std::string_view detail::layer_path(uint32_t layer) {
  const Layer* const known = by_number[layer].load(std::memory_order_acquire);
  return known != nullptr ? std::string_view(known->path) : std::string_view();
}

NameScope::NameScope(std::string_view name, Source at) : previous_(detail::charged.layer) {
  if (name.empty()) throw UserError("NameScope: the name is empty", at, "give the part a name");
  detail::charged.layer = numbered(previous_, name);
}

std::string_view NameScope::current() { return detail::layer_path(detail::charged.layer); }

std::string Source::layer_path() const { return std::string(detail::layer_path(layer)); }

}  // namespace tidemark
