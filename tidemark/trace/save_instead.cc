#include "tidemark/trace/save_instead.h"

#include <string_view>

namespace tidemark::detail {
namespace {

constinit thread_local const SaveInstead* instead_now = nullptr;

}  // namespace

bool is_same_line(Source a, Source b) {
  return a.line == b.line && std::string_view(a.file) == std::string_view(b.file);
}

SaveInstead::SaveInstead(Source at, SaveChoice choice)
    : at_(at), choice_(choice), outer_(instead_now) {
  instead_now = this;
}

SaveInstead::~SaveInstead() { instead_now = outer_; }

SaveChoice SaveInstead::chosen(Source at, SaveChoice told) {
  for (const SaveInstead* each = instead_now; each != nullptr; each = each->outer_)
    if (is_same_line(each->at_, at)) return each->choice_;
  return told;
}

}  // namespace tidemark::detail
