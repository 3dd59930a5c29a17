// Programs as text: the printer.
#include <charconv>
#include <cmath>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/ops/text/tokens.h"

namespace tidemark {
namespace {

class Printer {
 public:
  Printer(const Graph& graph, const TextOptions& options)
      : graph_(graph), options_(options), numbers_(graph.nodes.size(), -1) {}

  std::string run() {
    out_ += "function";
    if (is_name(graph_.name)) {
      out_ += ' ' + graph_.name;
    } else if (!graph_.name.empty()) {
      std::vector<int64_t> bytes;
      for (const char c : graph_.name) bytes.push_back(static_cast<unsigned char>(c));
      out_ += ' ' + quoted(bytes);
    }
    print_region(Graph::kBody, 0);
    return std::move(out_);
  }

 private:
  void print_region(RegionId id, size_t indent) {
    const Region& region = graph_.regions[static_cast<size_t>(id)];
    out_ += '(';
    for (size_t i = 0; i < region.parameters.size(); ++i) {
      if (i > 0) out_ += ", ";
      print_definition(region.parameters[i]);
    }
    out_ += ") {\n";
    for (const int32_t number : region.nodes) print_node(number, indent + 2);
    out_.append(indent + 2, ' ') += "return";
    print_list(region.results, " ");
    out_ += '\n';
    out_.append(indent, ' ') += "}\n";
  }

  void print_node(int32_t number, size_t indent) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    out_.append(indent, ' ');
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (i > 0) out_ += ", ";
      print_definition({number, static_cast<int16_t>(i)});
    }
    if (!node.results.empty()) out_ += " = ";
    out_ += node.op->name;
    if (node.op->literal == Literal::number) {
      print_literal(node);
    } else {
      out_ += '(';
      print_list(node.inputs, "");
      out_ += ')';
      print_attributes(node);
    }
    if (node.gradient_of != nullptr) (out_ += " gradient of ") += node.gradient_of->name;
    if (options_.sources && node.source.known()) out_ += "  # " + node.source.text();
    out_ += '\n';
    for (const RegionId inner : node.regions) {
      out_.append(indent + 2, ' ');
      print_region(inner, indent + 2);
    }
  }

  void print_attributes(const Node& node) {
    Attrs::Reader read = node.attrs.read();
    const char* before = " {";
    for (const AttrDef& attr : node.op->attrs) {
      std::string value;
      if (!print_attribute(attr.kind, read, value)) continue;
      ((out_ += before) += attr.name) += " = ";
      out_ += value;
      before = ", ";
    }
    if (before[0] == ',') out_ += '}';
  }

  static std::string printed(Dim size) { return size.is_traced() ? "?" : written(size); }

  // False if the value is the default, which is not printed.
  static bool print_attribute(AttrKind kind, Attrs::Reader& read, std::string& to) {
    switch (kind) {
      case AttrKind::integer: {
        const int64_t value = read.integer();
        to = std::to_string(value);
        return value != 0;
      }
      case AttrKind::size: {
        const Dim size = read.size();
        to = printed(size);
        return size.known_or(1) != 0;
      }
      case AttrKind::sizes: {
        to = "[";
        for (const Dim size : read.sizes()) (to += to.size() > 1 ? ", " : "") += printed(size);
        to += ']';
        return true;
      }
      case AttrKind::integers: {
        to = "[";
        for (const int64_t item : read.integers())
          (to += to.size() > 1 ? ", " : "") += std::to_string(item);
        to += ']';
        return true;
      }
      case AttrKind::boolean:
        to = "true";
        return read.boolean();
      case AttrKind::dtype:
        to = name(read.dtype());
        return true;
      case AttrKind::number: {
        const double value = read.number();
        to = exactly(value);
        return std::bit_cast<int64_t>(value) != 0;
      }
      case AttrKind::text: {
        const std::span<const int64_t> codes = read.integers();
        to = quoted(codes);
        return !codes.empty();
      }
    }
    return false;
  }

  void print_literal(const Node& node) {
    Attrs::Reader read = node.attrs.read();
    const DType dtype = read.dtype();
    const double real = read.number();
    const int64_t whole = read.integer();
    out_ += ' ';
    if (is_float(dtype)) {
      out_ += exactly(real);
    } else if (dtype == DType::boolean) {
      out_ += whole != 0 ? "true" : "false";
    } else if (dtype == DType::u64) {
      out_ += std::to_string(static_cast<uint64_t>(whole));
    } else {
      out_ += std::to_string(whole);
    }
  }

  // The shortest digits that round-trip; all NaNs print alike.
  static std::string exactly(double value) {
    if (std::isnan(value)) return "nan";
    char text[32];
    return {text, std::to_chars(text, text + sizeof(text), value).ptr};
  }

  void print_definition(Value value) {
    if (value.result == 0) {
      numbers_[static_cast<size_t>(value.node)] = next_;
      next_ += static_cast<int64_t>(graph_.node(value).results.size());
    }
    print_value(value);
    const TensorType& type = graph_.type(value);
    (out_ += ": ") += name(type.dtype);
    out_ += '[';
    for (int64_t axis = 0; axis < type.shape.rank(); ++axis) {
      if (axis > 0) out_ += ", ";
      const Dim size = type.shape[axis];
      out_ += size.is_open() ? "?" : std::to_string(int64_t{size});
    }
    out_ += ']';
  }

  void print_value(Value value) {
    out_ += '%';
    out_ += std::to_string(numbers_[static_cast<size_t>(value.node)] + value.result);
  }

  template <class Values>
  void print_list(const Values& values, const char* before) {
    for (const Value value : values) {
      out_ += before;
      print_value(value);
      before = ", ";
    }
  }

  const Graph& graph_;
  const TextOptions& options_;
  std::vector<int64_t> numbers_;  // Of each node's first result.
  int64_t next_ = 0;
  std::string out_;
};

}  // namespace

std::string to_text(const Graph& graph, const TextOptions& options) {
  return Printer(graph, options).run();
}

}  // namespace tidemark
