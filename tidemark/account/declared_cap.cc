#include "tidemark/account/declared_cap.h"

#include <algorithm>
#include <mutex>

#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/device/account.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace memory {

// All declared caps. Never destroyed: buffers in static storage are destroyed after main.
struct DeclaredCaps {
  Mutex lock;
  std::vector<const DeclaredCap*> list;

  static DeclaredCaps& get() {
    static constinit MadeOnce<DeclaredCaps> made;
    return made.get();
  }
  std::vector<detail::CapReport> reports() {
    const std::lock_guard guard(lock);
    std::vector<detail::CapReport> reports;
    for (const DeclaredCap* each : list) {
      detail::CapReport& report = reports.emplace_back();
      report.name = each->name_;
      report.cap = each->cap_;
      for (const auto& [line, held] : each->by_line_) {
        report.count += held.count;
        report.bytes += held.bytes;
      }
    }
    return reports;
  }
  void read(std::vector<detail::CappedLine>& lines) {
    const std::lock_guard guard(lock);
    lines.clear();
    for (const DeclaredCap* each : list)
      for (const auto& [line, held] : each->by_line_)
        lines.push_back({line, held.count, held.bytes});
  }
};

DeclaredCap::DeclaredCap(std::string name, int64_t cap) : name_(std::move(name)), cap_(cap) {
  DeclaredCaps& all = DeclaredCaps::get();
  const std::lock_guard guard(all.lock);
  all.list.push_back(this);
}

DeclaredCap::~DeclaredCap() {
  DeclaredCaps& all = DeclaredCaps::get();
  const std::lock_guard guard(all.lock);
  std::erase(all.list, this);
}

void DeclaredCap::add(const Tensor& tensor, Source at) { change(tensor, 1, at); }
void DeclaredCap::remove(const Tensor& tensor, Source at) { change(tensor, -1, at); }

void DeclaredCap::change(const Tensor& tensor, int64_t sign, Source at) {
  detail::array_of(tensor, at);  // Only tensors with memory count.
  const device::Storage& storage = *detail::TensorState::of(tensor)->storage;
  const std::lock_guard guard(DeclaredCaps::get().lock);
  LineTotal& held = by_line_[device::line_number(storage)];
  held.count += sign;
  held.bytes += sign * storage.bytes;
}

}  // namespace memory

namespace detail {

std::vector<CapReport> declared_caps() { return memory::DeclaredCaps::get().reports(); }
void read_capped_lines(std::vector<CappedLine>& lines) { memory::DeclaredCaps::get().read(lines); }

}  // namespace detail
}  // namespace tidemark
