// Programs from text: the parser.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>

#include "tidemark/ops/check_node.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/ops/text/tokens.h"
#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

// Source lines outlive the graph, in programs and reports, so names of files are never freed. Their
// number is bounded; further files share one name. The list grows at its head, without a lock that
// a forked child might find locked.
const char* kept_name(std::string_view file) {
  struct StoredName {
    std::string name;
    const StoredName* next;
  };
  constexpr int kMostNames = 4096;
  static constinit std::atomic<const StoredName*> head{nullptr};
  const StoredName* first = head.load(std::memory_order_acquire);
  int count = 0;
  for (const StoredName* kept = first; kept != nullptr; kept = kept->next, ++count)
    if (kept->name == file) return kept->name.c_str();
  if (count >= kMostNames) return "program.tm";
  auto fresh = std::make_unique<StoredName>(StoredName{std::string(file), first});
  while (!head.compare_exchange_weak(fresh->next, fresh.get(), std::memory_order_acq_rel)) {
  }
  return fresh.release()->name.c_str();
}

constexpr std::string_view kGrammar = "docs/ir.md has the grammar of programs";

class Parser {
 public:
  Parser(std::string_view text, std::string_view file)
      : tokens_(text), file_(file), kept_file_(kept_name(file)) {
    take();
  }

  Graph run() {
    expect("function", "at the beginning");
    if (next_.kind == Token::name) graph_.name = take().text;
    if (next_.kind == Token::string) {
      for (const int64_t code : read_text()) graph_.name += static_cast<char>(code);
    }
    read_region(Graph::kBody);
    if (next_.kind != Token::end) fail_at_next("the end of the file after the function");
    return std::move(graph_);
  }

 private:
  struct Result {
    Token name, type_at;
    TensorType type;
  };
  using Scope = std::unordered_map<std::string_view, Value>;

  // ---- tokens ----

  Token take() {
    const Token taken = next_;
    next_ = tokens_.next();
    return taken;
  }
  bool take_if(std::string_view wanted) {
    if (!next_.is(wanted)) return false;
    take();
    return true;
  }
  Token expect(std::string_view wanted, std::string_view where) {
    if (!next_.is(wanted)) fail_at_next(cat("'", wanted, "' ", where));
    return take();
  }
  Token expect_kind(Token::Kind kind, std::string_view what) {
    if (next_.kind != kind) fail_at_next(what);
    return take();
  }
  [[noreturn]] void fail(const Token& at, const std::string& problem,
                         std::string_view remedy) const {
    throw TextError(file_, at.line, at.column, problem, remedy);
  }
  [[noreturn]] void fail_at_next(std::string_view expected) const {
    fail(next_, cat("expected ", expected, ", found ", shown(next_)), kGrammar);
  }
  Source source(const Token& at) const {
    return Source::here(kept_file_, static_cast<unsigned>(at.line), "");
  }
  // Items between two marks, with commas between them.
  template <class Read>
  void read_list(std::string_view close, std::string_view what, Read read) {
    if (take_if(close)) return;
    do read();
    while (take_if(","));
    if (!take_if(close)) fail_at_next(cat("',' or '", close, "' ", what));
  }

  // ---- regions and nodes ----

  void read_region(RegionId id) {
    if (scopes_.size() > static_cast<size_t>(kDeepestRegion)) {
      fail(next_, cat("regions are nested more than ", kDeepestRegion, " deep"),
           "nest fewer regions");
    }
    scopes_.emplace_back();
    expect("(", "before the parameters");
    read_list(")", "after a parameter", [&] {
      const Result parameter = read_definition();
      define(parameter.name, graph_.add_parameter(id, parameter.type, source(parameter.name)));
    });
    expect("{", "before the nodes of a function or region");
    while (!next_.is("return")) read_node(id);
    take();
    std::vector<Value> results;
    if (next_.kind == Token::value) {
      do results.push_back(read_value());
      while (take_if(","));
    }
    expect("}", "after the results");
    graph_.regions[static_cast<size_t>(id)].results = std::move(results);
    scopes_.pop_back();
  }

  void read_node(RegionId region) {
    const std::vector<Result> results = read_results();
    const Token op = expect_kind(
        Token::name, results.empty() ? "a value, an op or 'return'" : "the name of an op");
    Node node;
    node.source = source(op);
    node.op = find_op(op.text);
    if (node.op == nullptr) {
      fail(op, cat("there is no op ", shown(op)),
           "ops have the names of the C++ functions, without td::");
    }
    for (const Result& result : results) node.results.push_back(result.type);
    if (node.op->literal == Literal::number) {
      node.attrs = read_literal(op, node.results);
    } else {
      expect("(", "before the operands");
      read_list(")", "after an operand", [&] { node.inputs.push_back(read_value()); });
      node.attrs = read_attributes(op, *node.op);
    }
    node.gradient_of = read_mark();
    while (next_.is("(")) {
      const RegionId inner = graph_.add_region();
      node.regions.push_back(inner);
      read_region(inner);
    }
    check(op, node, results);
    const int32_t number = graph_.add_node(region, std::move(node));
    for (size_t i = 0; i < results.size(); ++i)
      define(results[i].name, {number, static_cast<int16_t>(i)});
  }

  std::vector<Result> read_results() {
    std::vector<Result> results;
    if (next_.kind != Token::value) return results;
    do results.push_back(read_definition());
    while (take_if(","));
    expect("=", "after the results");
    if (results.size() > static_cast<size_t>(std::numeric_limits<int16_t>::max()))
      fail(results[0].name, cat("a node has ", results.size(), " results"), "32767 is the most");
    return results;
  }

  void check(const Token& op, const Node& node, const std::vector<Result>& results) const {
    std::vector<TensorType> wanted;
    try {
      wanted = check_node(graph_, node);
    } catch (const UserError& error) {
      fail(op, error.what(), "");
    }
    if (wanted.size() != results.size()) {
      fail(op,
           cat(op.text, " has ", wanted.size(), wanted.size() == 1 ? " result" : " results",
               ", the text names ", results.size()),
           "name each result, with its type");
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (fits(wanted[i], results[i].type)) continue;
      fail(results[i].type_at,
           cat("expected ", wanted[i], ", which ", op.text, " gives, found ", results[i].type),
           "write the type that the op gives, or give it other operands");
    }
  }

  // ---- values and types ----

  Result read_definition() {
    Result result;
    result.name = expect_kind(Token::value, "a value such as %0");
    expect(":", "before the value's type");
    result.type_at = next_;
    result.type = read_type();
    return result;
  }

  void define(const Token& name, Value value) {
    if (!scopes_.back().emplace(name.text, value).second) {
      fail(name, cat(shown(name), " is defined twice in its region"),
           "a value is defined once: give this one another name");
    }
  }

  Value read_value() {
    const Token name = expect_kind(Token::value, "a value such as %0");
    const auto found = scopes_.back().find(name.text);
    if (found != scopes_.back().end()) return found->second;
    const bool outside = std::any_of(scopes_.begin(), scopes_.end() - 1,
                                     [&](const Scope& scope) { return scope.contains(name.text); });
    if (outside) {
      fail(name, cat(shown(name), " belongs to a region around this one"),
           "regions are closed: make it an operand of the node and a parameter of the region");
    }
    fail(name, cat(shown(name), " is not defined before this line"),
         "values are defined before they are read");
  }

  DType read_dtype() {
    const Token token = next_;
    if (token.kind == Token::name) {
      for (int i = 0; i < kStoredDTypes; ++i) {
        const auto dtype = static_cast<DType>(i);
        if (token.text != name(dtype)) continue;
        take();
        return dtype;
      }
    }
    fail(token, cat("expected a dtype, found ", shown(token)),
         "the dtypes are f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64 and "
         "c128");
  }

  TensorType read_type() {
    const Token begin = next_;
    TensorType type;
    type.dtype = read_dtype();
    expect("[", "after the dtype");
    read_list("]", "after a size", [&] { type.shape.push_back(read_size()); });
    try {
      check_type(type);
    } catch (const UserError& error) {
      fail(begin, error.what(), "");
    }
    return type;
  }

  Dim read_size() {
    if (take_if("?")) {
      if (next_.kind == Token::name) take();  // For people, and for `tidemark plan`.
      return open;
    }
    const Token token = next_;
    if (token.kind == Token::number) {
      const int64_t size = read_integer();
      if (size >= 0) return size;
    }
    fail(token, cat("expected a size, found ", shown(token)),
         "a size is a number from 0 up, or ? for an open size");
  }

  // The op whose gradient a node is part of: "gradient of tanh". Null if the text names none.
  const OpDef* read_mark() {
    if (!take_if("gradient")) return nullptr;
    expect("of", "after 'gradient'");
    const Token token = expect_kind(Token::name, "the name of an op");
    const OpDef* const op = find_op(token.text);
    if (op == nullptr)
      fail(token, cat("there is no op ", shown(token)),
           "a gradient is that of an op: gradient of tanh");
    return op;
  }

  // ---- attributes ----

  Attrs read_attributes(const Token& op, const OpDef& def) {
    std::vector<std::optional<Attrs>> given(def.attrs.size());
    if (take_if("{")) read_list("}", "after an attribute", [&] { read_attribute(def, given); });
    Attrs attrs;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i] && def.attrs[i].kind == AttrKind::dtype) {
        fail(op, cat(op.text, " needs the attribute '", def.attrs[i].name, "'"),
             "only attributes that are 0, false or [] may be left out");
      }
      attrs.append(given[i] ? *given[i] : left_out(def.attrs[i].kind));
    }
    return attrs;
  }
  static Attrs left_out(AttrKind kind) {
    switch (kind) {
      case AttrKind::integers:
      case AttrKind::text:
        return Attrs().add(std::span<const int64_t>());
      case AttrKind::sizes:
        return Attrs().add(std::span<const Dim>());
      case AttrKind::size:
        return Attrs().add(Dim(0));
      default:
        return Attrs().add(int64_t{0});
    }
  }

  void read_attribute(const OpDef& def, std::vector<std::optional<Attrs>>& given) {
    const Token name = expect_kind(Token::name, "the name of an attribute");
    size_t i = 0;
    while (i < def.attrs.size() && def.attrs[i].name != name.text) ++i;
    if (i == def.attrs.size()) {
      std::string names;
      for (const AttrDef& attr : def.attrs) names += cat(names.empty() ? "" : ", ", attr.name);
      fail(name, cat(def.name, " has no attribute ", shown(name)),
           names.empty() ? "it has none" : cat("it has ", names));
    }
    if (given[i]) fail(name, cat(shown(name), " is given twice"), "give it once");
    expect("=", "after the attribute's name");
    given[i] = read_attribute_value(def.attrs[i].kind);
  }

  Attrs read_attribute_value(AttrKind kind) {
    switch (kind) {
      case AttrKind::integer:
        return Attrs().add(read_integer());
      case AttrKind::size:
        return Attrs().add(read_size_attribute());
      case AttrKind::integers: {
        std::vector<int64_t> list;
        expect("[", "before a list");
        read_list("]", "after an item", [&] { list.push_back(read_integer()); });
        return Attrs().add(std::span<const int64_t>(list));
      }
      case AttrKind::sizes: {
        DimList list;
        expect("[", "before a list");
        read_list("]", "after an item", [&] { list.push_back(read_size_attribute()); });
        return Attrs().add(list);
      }
      case AttrKind::boolean:
        return Attrs().add(read_boolean());
      case AttrKind::dtype:
        return Attrs().add(read_dtype());
      case AttrKind::number:
        return Attrs().add(read_number());
      case AttrKind::text:
        return Attrs().add(std::span<const int64_t>(read_text()));
    }
    return {};
  }

  // Any number that a Dim can hold; the op defines the meaning of negative ones.
  Dim read_size_attribute() {
    const Token token = next_;
    const int64_t number = read_integer();
    if (number < -std::numeric_limits<int64_t>::max() / 2)
      fail(token, cat("a size cannot be ", number), "sizes are at least 0");
    return number;
  }

  // The dtype of a constant is that of its result.
  Attrs read_literal(const Token& op, const std::vector<TensorType>& results) {
    if (results.size() != 1) fail(op, "a constant has one result", "name it, with its type");
    const DType dtype = results[0].dtype;
    double real = 0;
    int64_t whole = 0;
    if (is_float(dtype)) {
      real = read_number();
    } else if (dtype == DType::boolean) {
      whole = read_boolean() ? 1 : 0;
    } else {
      whole = read_element(dtype);
    }
    return Attrs().add(dtype).add(real).add(whole);
  }

  // A number of an integer dtype; those of u64 beyond i64 have its bits.
  int64_t read_element(DType dtype) {
    const Token token = next_;
    if (dtype == DType::u64) {
      if (token.text.starts_with("-"))
        fail(token, cat(token.text, " does not fit u64"), "use a wider dtype");
      return static_cast<int64_t>(read_as<uint64_t>("a whole number"));
    }
    const int64_t whole = read_integer();
    if (!fits(whole, dtype)) fail(token, cat(whole, " does not fit ", dtype), "use a wider dtype");
    return whole;
  }

  int64_t read_integer() { return read_as<int64_t>("a whole number"); }
  double read_number() { return read_as<double>("a number"); }

  template <class Number>
  Number read_as(const char* what) {
    const Token token = next_;
    Number value = 0;
    const char* begin = token.text.data();
    const char* end = begin + token.text.size();
    const bool candidate = token.kind == Token::number || token.is("inf") || token.is("nan");
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (candidate && error == std::errc::result_out_of_range)
      fail(token, cat(shown(token), " does not fit 64 bits"), "write a number that does");
    if (!candidate || error != std::errc() || stop != end) fail_at_next(what);
    take();
    return value;
  }

  bool read_boolean() {
    if (take_if("true")) return true;
    if (take_if("false")) return false;
    fail_at_next("'true' or 'false'");
  }

  std::vector<int64_t> read_text() {
    const Token token = expect_kind(Token::string, "a text in double quotes");
    std::vector<int64_t> codes;
    if (unquoted(token.text, codes)) return codes;
    fail(token, cat(shown(token), " has an unknown escape sequence"),
         "the escapes are \\\\, \\\", \\xNN, and \\% for an operand");
  }

  Tokens tokens_;
  std::string_view file_;
  const char* kept_file_;
  Token next_;
  Graph graph_;
  std::vector<Scope> scopes_;  // Of the region being read and of those around it, innermost last.
};

}  // namespace

TextError::TextError(std::string_view file, int64_t line, int64_t column,
                     const std::string& problem, std::string_view remedy)
    : UserError(cat(file, ":", line, ":", column, ": ", problem), Source::none(), remedy),
      line_(line),
      column_(column) {}

Graph parse_graph(std::string_view text, std::string_view file_name) {
  return Parser(text, file_name).run();
}

}  // namespace tidemark
