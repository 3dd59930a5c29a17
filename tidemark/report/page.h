// The files of tidemark/report/page, embedded in the library. Internal to report/.
#pragma once

#include <span>
#include <string_view>

namespace tidemark::report {

struct PageFile {
  std::string_view name;  // "style.css"
  std::string_view text;
};
// In the order of the page; the first is the HTML.
std::span<const PageFile> page_files();

}  // namespace tidemark::report
