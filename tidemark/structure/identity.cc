#include "tidemark/structure/identity.h"

#include <atomic>

#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

uint64_t next_identity() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void add_identity(uint64_t number, std::string& key) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}
void add_identity(const Variable& variable, std::string& key) {
  add_identity(VariableState::of(variable)->id, key);
}

}  // namespace tidemark::detail
