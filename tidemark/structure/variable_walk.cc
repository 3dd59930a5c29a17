#include "tidemark/structure/variable_walk.h"

#include "tidemark/base/error.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

void VariablePath::add_to(std::string& text) const {
  if (parent_ == nullptr) return;
  parent_->add_to(text);
  if (!text.empty()) text += '/';
  if (number_ >= 0) {
    text += std::to_string(number_);
    return;
  }
  std::string_view name = name_;
  while (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
  text += name;
}

std::string VariablePath::text() const {
  std::string text;
  add_to(text);
  return text;
}

void refuse_to_replace(const VariablePath& path) {
  throw UserError(
      cat("clone: the field \"", path.text(),
          "\" is const: its copy would share the original's Variable"),
      Source::none(),
      "declare the field without const: a Variable can be assigned through a const handle");
}

bool VariablesOnce::add(const Variable& variable) {
  return seen_.insert(VariableState::of(variable).get()).second;
}

void VariableClones::replace(Variable& variable) {
  const VariableState* const original = VariableState::of(variable).get();
  const auto found = clones_.find(original);
  variable = found != clones_.end() ? found->second
                                    : clones_.emplace(original, variable.clone(at_)).first->second;
}

}  // namespace tidemark::detail
