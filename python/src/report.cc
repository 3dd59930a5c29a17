// td.report: plans, runs and watched loops as pages and traces.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "path.h"
#include "source.h"

namespace tidemark::python {
namespace {

using nb::arg;

void write_html(const PathText& path, nb::handle first, nb::handle second, bool tradeoff) {
  const Source at = calling_line();
  if (nb::isinstance<WatchReport>(first))
    return report::write_html(path.text, nb::cast<const WatchReport&>(first), at);
  const Plan& plan = nb::cast<const Plan&>(first);
  const report::HtmlOptions options{.tradeoff = tradeoff};
  if (nb::isinstance<Profile>(second)) {
    const Profile& profile = nb::cast<const Profile&>(second);
    const nb::gil_scoped_release released;
    report::write_html(path.text, plan, profile, options, at);
  } else if (nb::isinstance<Plan>(second)) {
    report::write_html(path.text, plan, nb::cast<const Plan&>(second), at);
  } else {
    const nb::gil_scoped_release released;
    report::write_html(path.text, plan, options, at);
  }
}

std::string page_of(nb::handle object) {
  if (nb::isinstance<WatchReport>(object))
    return report::html_page(nb::cast<const WatchReport&>(object));
  const std::string document = nb::isinstance<Plan>(object)
                                   ? nb::cast<const Plan&>(object).to_json()
                                   : nb::cast<const Profile&>(object).to_json();
  return report::html_page(std::span(&document, 1));
}

}  // namespace

void bind_report(nb::module_& module) {
  nb::module_ report =
      module.def_submodule("report", "Plans, runs and watched loops as pages and traces.");
  report
      .def("write_html", write_html, arg("path"), arg("plan"), arg("other") = nb::none(),
           nb::kw_only(), arg("tradeoff") = false,
           "Writes one self-contained page: of a plan, a plan and its profile, two plans, or a "
           "WatchReport. "
           "With `tradeoff` the page has the curve of bytes against work.")
      .def(
          "write_trace",
          [](const PathText& path, const Profile& profile) {
            report::write_trace(path.text, profile, calling_line());
          },
          arg("path"), arg("profile"),
          "When and on which thread each step ran, for ui.perfetto.dev.")
      .def("html_page", page_of, arg("object"),
           "The page of a plan, a profile or a WatchReport, as a text.");
}

}  // namespace tidemark::python
