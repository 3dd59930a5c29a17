// One table of ops; a file of one purpose, though a long one.
#include "tests/truth/interpret.h"

#include <functional>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::truth {
namespace {

namespace td = tidemark;
using Tensors = std::vector<Tensor>;

struct Context {
  const World& world;
  std::shared_ptr<const Sizes> sizes;
  std::shared_ptr<Scope> scope;
};

const Tensor& find(const Scope& scope, const std::string& name) {
  for (const Scope* at = &scope; at != nullptr; at = at->outer.get()) {
    const auto found = at->values.find(name);
    if (found != at->values.end()) return found->second;
  }
  throw UserError(cat("no value is called ", name), Source::here());
}

bool is_number(const std::string& text) {
  return text.find_first_not_of("-.0123456789e") == std::string::npos && text != "e";
}

Tensors run_block(const Context& context, const Block& block, const Tensors& given);

// One statement: its operands and attributes.
class Call {
 public:
  Call(const Context& context, const Statement& statement)
      : context(context), statement(statement) {
    for (const std::string& text : statement.operands) add(text);
  }

  size_t count() const { return tensors_.size(); }
  // Given away where the text says so.
  Operand operand(size_t i) {
    if (dying_[i]) return Operand(std::move(tensors_[i]));
    return Operand(tensors_[i]);
  }
  const Tensor& tensor(size_t i) const { return tensors_.at(i); }
  const Tensors& tensors() const { return tensors_; }
  Tensors named(const std::string& attr) const {
    Tensors list;
    for (const std::string& name : split_text(text(attr), ','))
      list.push_back(find(*context.scope, name));
    return list;
  }

  bool has(const std::string& attr) const { return statement.attrs.contains(attr); }
  const std::string& text(const std::string& attr) const { return statement.attrs.at(attr); }
  int64_t whole(const std::string& attr, int64_t otherwise = 0) const {
    return has(attr) ? std::stoll(text(attr)) : otherwise;
  }
  double real(const std::string& attr, double otherwise = 0) const {
    return has(attr) ? std::stod(text(attr)) : otherwise;
  }
  DType dtype(const std::string& attr = "dtype") const {
    return dtype_named(has(attr) ? text(attr) : "float", context.world.program);
  }
  Dim size(const std::string& attr) const { return size_of(text(attr), *context.sizes); }
  Shape shape(const std::string& attr = "shape") const {
    Shape shape;
    const std::string& list = text(attr);
    for (const std::string& part : split_text(list.substr(1, list.size() - 2), ','))
      shape.push_back(size_of(part, *context.sizes));
    return shape;
  }
  std::vector<int64_t> wholes(const std::string& attr) const {
    std::vector<int64_t> list;
    if (has(attr))
      for (const std::string& part : split_text(text(attr), ',')) list.push_back(std::stoll(part));
    return list;
  }
  DimList sizes(const std::string& attr) const {
    DimList list;
    for (const int64_t size : wholes(attr)) list.push_back(size);
    return list;
  }
  std::array<int64_t, 2> pair(const std::string& attr, int64_t otherwise = 1) const {
    const std::vector<int64_t> list = wholes(attr);
    return list.empty() ? std::array{otherwise, otherwise} : std::array{list[0], list[1]};
  }
  Axes axes() const {
    return !has("axes") || text("axes") == "all" ? Axes() : Axes(wholes("axes"));
  }
  Keep keep() const { return whole("keepdims") != 0 ? keepdims : Keep::no; }
  // By the op's own schema.
  Attrs attrs(const OpDef& op) const {
    Attrs attrs;
    for (const AttrDef& def : op.attrs) {
      const std::string name(def.name);
      if (def.kind == AttrKind::integers)
        attrs.add(AxisList(std::span<const int64_t>(wholes(name))));
      else if (def.kind == AttrKind::sizes)
        attrs.add(sizes(name));
      else if (def.kind == AttrKind::size)
        attrs.add(Dim(whole(name)));
      else if (def.kind == AttrKind::dtype)
        attrs.add(dtype(name));
      else if (def.kind == AttrKind::number)
        attrs.add(real(name));
      else
        attrs.add(whole(name));
    }
    return attrs;
  }
  random::Key key() const {
    const random::Key key(static_cast<uint64_t>(whole("key")));
    return count() > 0 ? key.fold_in(tensor(0)) : key;
  }
  Tensor drawn(Tensor x) const {
    // Eager loops without trips and branches not taken are traced for their types: nothing is
    // drawn.
    if (context.world.draws != nullptr && !detail::tracing()) context.world.draws->push_back(x);
    return x;
  }
  // "1:;::2;-1;new;...;all;@t5"
  Slices place() const {
    Slices place(std::initializer_list<Index>{});
    for (const std::string& item : split_text(text("at"), ';')) place.list.push_back(index(item));
    return place;
  }
  Save save() const {
    if (!has("save")) return Save::automatic();
    const std::vector<std::string> parts = split_text(text("save"), ':');
    if (parts[0] == "all") return Save::all();
    const int64_t amount = std::stoll(parts[1]);
    return parts[0] == "every"   ? Save::every(amount)
           : parts[0] == "slots" ? Save::slots(amount)
                                 : Save::bytes(Bytes(std::max(amount, context.world.loop_bytes)));
  }

  const Context& context;
  const Statement& statement;

 private:
  void add(const std::string& text) {
    const bool dying = text.ends_with('!');
    dying_.push_back(dying);
    if (is_number(text)) {
      tensors_.push_back(text.find_first_of(".e") != std::string::npos ? Tensor(std::stod(text))
                                                                       : Tensor(std::stoll(text)));
    } else if (dying) {
      tensors_.push_back(std::move(context.scope->values.at(text.substr(0, text.size() - 1))));
    } else {
      tensors_.push_back(find(*context.scope, text));
    }
  }
  Index index(const std::string& item) const {
    if (item == "new") return newaxis;
    if (item == "...") return ellipsis;
    if (item == "all") return td::all;
    if (item[0] == '@') return find(*context.scope, item.substr(1));
    if (item.find(':') == std::string::npos) return std::stoll(item);
    std::vector<std::string> parts = split_text(item, ':');
    parts.resize(3);
    Slice slice;
    if (!parts[0].empty()) slice.begin = std::stoll(parts[0]);
    if (!parts[1].empty()) slice.end = std::stoll(parts[1]);
    if (!parts[2].empty()) slice.step = std::stoll(parts[2]);
    return slice;
  }

  Tensors tensors_;
  std::vector<bool> dying_;
};

using Rule = std::function<Tensors(Call&)>;
using Rules = std::map<std::string, Rule>;

// Of an op that gives one tensor.
template <class F>
Rule one(F f) {
  return [f](Call& call) { return Tensors{f(call)}; };
}

// ---- the catalogue ------------------------------------------------------------------------------

Tensor pointwise(const OpDef& op, Call& call) {
  const Source at = Source::here();
  const Operand a = call.operand(0);
  const Operand b = op.arity > 1 ? call.operand(1) : a, c = op.arity > 2 ? call.operand(2) : a;
  const Operand* const list[] = {&a, &b, &c};
  return detail::bind_op({op, std::span(list).first(static_cast<size_t>(op.arity)), {}, at});
}

// With attributes as the catalogue has them.
Tensor by_schema(const OpDef& op, Call& call) {
  return detail::bind_op(op, call.tensors(), call.attrs(op), Source::here());
}

template <class Function>
void add_reduction(Rules& rules, const char* name, const Function& function) {
  rules[name] = one(
      [&function](Call& c) { return function(c.operand(0), c.axes(), c.keep(), Source::here()); });
}

void add_catalogue(Rules& rules) {
  for (const OpDef& op : catalogue()) {
    if (op.family == Family::pointwise && op.value != nullptr)
      rules[std::string(op.name)] = one([&op](Call& c) { return pointwise(op, c); });
    else if (op.family == Family::row)
      rules[std::string(op.name)] = one([&op](Call& c) {
        return (*static_cast<const RowOp*>(op.self))(c.operand(0), c.whole("axis"), Source::here());
      });
  }
  for (const ReduceOp* op : kReduceOps) add_reduction(rules, op->name.data(), *op);
  for (const NamedOp* op :
       {&ops::slice,       &ops::transpose,   &ops::concat,          &ops::pad,
        &ops::update,      &ops::gather,      &ops::take_along_axis, &ops::scatter_add,
        &ops::scatter_max, &ops::scatter_min, &ops::scatter_mul,     &ops::cumprod,
        &ops::cumsum,      &ops::linear_scan, &ops::searchsorted,    &ops::fourier,
        &ops::first_equal, &ops::conv2d,      &ops::conv3d,          &ops::resample,
        &ops::conv_kernel, &ops::distances,   &ops::real_fourier,    &ops::weighted_differences}) {
    const OpDef& def = def_of(op);
    rules[std::string(op->name)] = one([&def](Call& c) { return by_schema(def, c); });
  }
  rules["sort"] = [](Call& c) {
    const SortOptions options{.descending = c.whole("descending") != 0};
    return Tensors{sort(c.tensor(0), c.whole("axis"), options),
                   argsort(c.tensor(0), c.whole("axis"), options)};
  };
  const auto direction = [](Call& c) { return DirectionOptions{c.whole("reverse") != 0}; };
  rules["cummax"] =
      one([=](Call& c) { return cummax(c.tensor(0), c.whole("axis"), direction(c)); });
  rules["cummin"] =
      one([=](Call& c) { return cummin(c.tensor(0), c.whole("axis"), direction(c)); });
  rules["top_k"] = [](Call& c) {
    const auto [values, indices] = top_k(c.tensor(0), c.whole("k"), c.whole("axis"));
    return Tensors{values, indices};
  };
  rules["cast"] = one([](Call& c) { return cast(c.operand(0), c.dtype()); });
  rules["reshape"] = one([](Call& c) { return reshape(c.operand(0), c.shape()); });
  rules["broadcast_to"] = one([](Call& c) { return broadcast_to(c.operand(0), c.shape()); });
  rules["stop_gradient"] = one([](Call& c) { return stop_gradient(c.operand(0)); });
  rules["put"] = one([](Call& c) { return put(c.operand(0), c.operand(1), c.operand(2)); });
  rules["matmul"] = one([](Call& c) {
    return matmul(
        c.operand(0), c.operand(1),
        {.transpose_a = c.whole("transpose_a") != 0, .transpose_b = c.whole("transpose_b") != 0});
  });
}

void add_draws(Rules& rules) {
  rules["random_normal"] = one([](Call& c) {
    return c.drawn(random::normal(
        c.shape(),
        {.mean = c.real("a"), .stddev = c.real("b"), .dtype = c.dtype(), .key = c.key()}));
  });
  rules["random_uniform"] = one([](Call& c) {
    return c.drawn(random::uniform(
        c.shape(), {.low = c.real("a"), .high = c.real("b"), .dtype = c.dtype(), .key = c.key()}));
  });
  rules["random_bernoulli"] = one([](Call& c) {
    return c.drawn(random::bernoulli(c.shape(), {.p = c.real("a"), .key = c.key()}));
  });
  rules["random_integers"] = one([](Call& c) {
    return c.drawn(random::integers(
        c.shape(),
        {.low = c.whole("low"), .high = c.whole("high"), .dtype = c.dtype(), .key = c.key()}));
  });
  rules["random_permutation"] =
      one([](Call& c) { return c.drawn(random::permutation(c.whole("n"), {.key = c.key()})); });
}

// ---- what is made of other ops ------------------------------------------------------------------

void add_creation(Rules& rules) {
  rules["arange"] = one([](Call& c) {
    const auto number = [&c](const char* attr) {
      return c.text(attr).find('.') != std::string::npos ? Tensor(c.real(attr))
                                                         : Tensor(c.whole(attr));
    };
    if (c.has("size")) return cast(arange(c.size("size")), c.dtype());
    return arange(number("start"), number("stop"), number("step"), c.dtype());
  });
  rules["linspace"] = one([](Call& c) {
    return linspace(c.real("start"), c.real("stop"), c.whole("count"), c.dtype());
  });
  rules["eye"] = one([](Call& c) { return eye(c.whole("rows"), c.whole("columns"), c.dtype()); });
  rules["zeros"] = one([](Call& c) { return zeros(c.shape(), c.dtype()); });
  rules["ones"] = one([](Call& c) { return ones(c.shape(), c.dtype()); });
  rules["full"] = one([](Call& c) { return full(c.shape(), c.real("value"), c.dtype()); });
  rules["one_hot"] =
      one([](Call& c) { return one_hot(c.operand(0), c.whole("depth"), c.dtype()); });
}

void add_shapes(Rules& rules) {
  rules["index"] = one([](Call& c) { return c.tensor(0)[c.place()]; });
  rules["update_at"] = one([](Call& c) { return update(c.operand(0), c.place(), c.operand(1)); });
  rules["td_pad"] = one([](Call& c) {
    const Shape low = c.shape("low"), high = c.shape("high");
    Padding2 widths;
    for (int64_t i = 0; i < low.rank(); ++i) widths.emplace_back(low[i], high[i]);
    return pad(c.operand(0), widths, c.real("value"));
  });
  rules["expand_dims"] = one([](Call& c) { return expand_dims(c.operand(0), c.whole("axis")); });
  rules["squeeze"] = one([](Call& c) { return squeeze(c.operand(0), c.axes()); });
  rules["stack"] = one([](Call& c) { return stack(c.tensors(), c.whole("axis")); });
  rules["split"] = [](Call& c) {
    if (c.has("parts")) return split(c.operand(0), c.whole("parts"), c.whole("axis"));
    return split(c.operand(0), c.wholes("sizes"), c.whole("axis"));
  };
  rules["unstack"] = [](Call& c) { return unstack(c.operand(0), c.whole("axis")); };
  rules["tile"] = one([](Call& c) { return tile(c.operand(0), c.wholes("counts")); });
  rules["repeat"] = one([](Call& c) {
    if (!c.has("axis")) return repeat(c.operand(0), c.size("count"));
    return repeat(c.operand(0), c.size("count"), c.whole("axis"));
  });
  rules["flip"] = one([](Call& c) { return flip(c.operand(0), c.axes()); });
  rules["tril"] = one([](Call& c) { return tril(c.operand(0), c.whole("diagonal")); });
  rules["triu"] = one([](Call& c) { return triu(c.operand(0), c.whole("diagonal")); });
}

ImageLayout image_layout(const Call& call) {
  return call.whole("nchw") != 0 ? ImageLayout::nchw : ImageLayout::nhwc;
}
Padding padding(const Call& call) {
  return call.whole("same") != 0 ? Padding::same : Padding::valid;
}
PoolOptions pool(const Call& call) {
  PoolOptions options{
      .size = call.pair("size"), .padding = padding(call), .layout = image_layout(call)};
  if (call.has("strides")) options.strides = call.pair("strides");
  return options;
}

void add_contractions(Rules& rules) {
  rules["tensordot"] =
      one([](Call& c) { return tensordot(c.operand(0), c.operand(1), c.whole("axes")); });
  rules["einsum"] = one([](Call& c) {
    // "=" separates attributes from their values, so the arrow is written ">".
    std::string text = c.text("subscripts");
    const size_t arrow = text.find('>');
    if (arrow != std::string::npos) text.insert(arrow, "-");
    return c.count() == 1 ? einsum(text, c.operand(0)) : einsum(text, c.operand(0), c.operand(1));
  });
  rules["outer"] = one([](Call& c) { return outer(c.operand(0), c.operand(1)); });
  rules["td_conv2d"] = one([](Call& c) {
    return conv2d(c.operand(0), c.operand(1),
                  {.strides = c.pair("strides"),
                   .padding = padding(c),
                   .dilations = c.pair("dilations"),
                   .groups = c.whole("groups", 1),
                   .layout = image_layout(c)});
  });
  rules["max_pool"] = one([](Call& c) { return max_pool(c.operand(0), pool(c)); });
  rules["avg_pool"] = one([](Call& c) { return avg_pool(c.operand(0), pool(c)); });
  rules["attention"] = one([](Call& c) {
    AttentionOptions options{.causal = c.whole("causal") != 0};
    if (c.has("scale")) options.scale = c.real("scale");
    if (c.count() > 3) options.mask = c.tensor(3);
    return attention(c.operand(0), c.operand(1), c.operand(2), options);
  });
}

NormOptions norm_options(const Call& call) {
  NormOptions options{.epsilon = call.real("epsilon", 1e-5)};
  if (call.count() > 1) options.scale = call.tensor(1);
  if (call.count() > 2) options.bias = call.tensor(2);
  return options;
}

void add_composites(Rules& rules) {
  add_reduction(rules, "mean", mean);
  add_reduction(rules, "var", var);
  add_reduction(rules, "std", td::std);
  add_reduction(rules, "logsumexp", logsumexp);
  add_reduction(rules, "norm", norm);
  rules["gelu"] = one([](Call& c) { return gelu(c.operand(0)); });
  rules["silu"] = one([](Call& c) { return silu(c.operand(0)); });
  rules["softplus"] = one([](Call& c) { return softplus(c.operand(0)); });
  rules["leaky_relu"] = one([](Call& c) { return leaky_relu(c.operand(0), c.real("slope")); });
  rules["layer_norm"] = one([](Call& c) { return layer_norm(c.tensor(0), norm_options(c)); });
  rules["rms_norm"] = one([](Call& c) { return rms_norm(c.tensor(0), norm_options(c)); });
  rules["embedding"] = one([](Call& c) { return embedding(c.operand(0), c.operand(1)); });
  rules["mse"] = one([](Call& c) { return mse(c.operand(0), c.operand(1)); });
  rules["sparse_softmax_cross_entropy"] =
      one([](Call& c) { return sparse_softmax_cross_entropy(c.operand(0), c.operand(1)); });
  rules["clip_by_norm"] = one([](Call& c) { return clip_by_norm(c.operand(0), c.real("most")); });
}

// ---- Variables and effects ----------------------------------------------------------------------

void add_variables(Rules& rules) {
  const auto variable = [](const Call& c) { return c.context.world.variables.at(c.text("to")); };
  rules["read"] = one([variable](Call& c) { return variable(c).value(); });
  const auto writes = [&](const char* name, auto write) {
    rules[name] = [variable, write](Call& c) {
      write(variable(c), c);
      return Tensors();
    };
  };
  writes("assign", [](const Variable& v, Call& c) { v.assign(c.operand(0)); });
  writes("assign_add", [](const Variable& v, Call& c) { v.assign_add(c.operand(0)); });
  writes("assign_sub", [](const Variable& v, Call& c) { v.assign_sub(c.operand(0)); });
  writes("assign_slice",
         [](const Variable& v, Call& c) { v.assign_slice(c.place(), c.operand(0)); });
  writes("scatter_update",
         [](const Variable& v, Call& c) { v.scatter_update(c.operand(0), c.operand(1)); });
}

// ---- control flow -------------------------------------------------------------------------------

Tensors branch(Call& call, size_t number) {
  return run_block(call.context, call.statement.blocks.at(number), {});
}

Tensors switched(Call& c) {
  const auto branch_of = [&c](size_t number) { return [&c, number] { return branch(c, number); }; };
  if (c.statement.blocks.size() == 2) return switch_case(c.operand(0), branch_of(0), branch_of(1));
  return switch_case(c.operand(0), branch_of(0), branch_of(1), branch_of(2));
}

Tensors while_looped(Call& c) {
  const Block &condition = c.statement.blocks[0], &body = c.statement.blocks[1];
  LoopOptions options{.save = c.save()};
  if (c.has("max_iterations")) options.max_iterations = c.whole("max_iterations");
  return while_loop(
      [&](const Tensors& carried) { return run_block(c.context, condition, carried).at(0); },
      [&](const Tensors& carried) { return run_block(c.context, body, carried); }, c.named("carry"),
      options);
}

Tensors for_looped(Call& c) {
  const auto body = [&](const Tensor& number, Tensors carried) {
    carried.insert(carried.begin(), number);
    return run_block(c.context, c.statement.blocks[0], carried);
  };
  return fori_loop(c.operand(0), c.operand(1), body, c.named("carry"), {.save = c.save()});
}

// What a body gives last is an element of a TensorArray: number i, or the next one. With `read` the
// body gets the first element as the array has it.
Tensors array_looped(Call& c) {
  const Tensors carries = c.has("carry") ? c.named("carry") : Tensors();
  TensorArrayOptions options{.element_shape = c.shape()};
  const bool pushes = c.whole("push") != 0;
  if (pushes)
    options.max_size = c.size("elements");
  else
    options.size = c.size("elements");
  const auto body = [&](const Tensor& number, const Tensors& carried, TensorArray array) {
    Tensors given = {number};
    given.insert(given.end(), carried.begin(), carried.end());
    if (c.whole("read") != 0) given.push_back(array.read(0));
    Tensors results = run_block(c.context, c.statement.blocks[0], given);
    const Tensor element = results.back();
    results.pop_back();
    if (pushes) return std::tuple(results, std::move(array).push_back(element));
    return std::tuple(results, std::move(array).write(number, element));
  };
  auto [last, array] =
      fori_loop(c.operand(0), c.operand(1), body,
                std::tuple(carries, TensorArray(c.dtype(), options)), {.save = c.save()});
  last.push_back(array.stack());
  return last;
}

// The slices of a tensor in a TensorArray, some of them replaced, some picked, and one read.
Tensor moved_in_array(Call& c) {
  const TensorArray array =
      TensorArray(c.tensor(0).dtype(), {.size = c.tensor(0).shape()[0]}).unstack(c.operand(0));
  const TensorArray changed = array.scatter(c.operand(1), c.operand(2));
  return changed.gather(c.operand(3)) + changed.read(c.whole("read")) * array.read(-1);
}

Tensors scanned(Call& c) {
  const Tensors carries = c.has("carry") ? c.named("carry") : Tensors();
  const auto body = [&](Tensors carried, const Tensors& slices) {
    carried.insert(carried.end(), slices.begin(), slices.end());
    Tensors given = run_block(c.context, c.statement.blocks[0], carried);
    const auto end = given.begin() + static_cast<int64_t>(carries.size());
    return std::pair(Tensors(given.begin(), end), Tensors(end, given.end()));
  };
  auto [last, stacked] =
      scan(body, carries, c.named("xs"), {.reverse = c.whole("reverse") != 0, .save = c.save()});
  last.insert(last.end(), stacked.begin(), stacked.end());
  return last;
}

MapOptions map_options(const Call& c) {
  MapOptions options;
  if (c.has("parallel_iterations")) options.parallel_iterations = c.whole("parallel_iterations");
  if (c.has("chunk")) options.chunk = c.whole("chunk");
  return options;
}

void add_control_flow(Rules& rules) {
  rules["cond"] = [](Call& c) {
    return cond(c.operand(0), [&c] { return branch(c, 0); }, [&c] { return branch(c, 1); });
  };
  rules["switch_case"] = switched;
  rules["while_loop"] = while_looped;
  rules["fori_loop"] = for_looped;
  rules["array_loop"] = array_looped;
  rules["array_moves"] = one(moved_in_array);
  rules["scan"] = scanned;
  const auto body_of = [](Call& c) {
    return
        [&c](const Tensors& slices) { return run_block(c.context, c.statement.blocks[0], slices); };
  };
  rules["map_fn"] = [body_of](Call& c) {
    return map_fn(body_of(c), c.named("xs"), map_options(c));
  };
  rules["vectorized_map"] = [body_of](Call& c) {
    return vectorized_map(body_of(c), c.named("xs"), map_options(c));
  };
  // These keep the block, which must not look at anything that ends with this statement.
  rules["recompute"] = [](Call& c) {
    return recompute([context = c.context, block = &c.statement.blocks[0]](const Tensors& given) {
      return run_block(context, *block, given);
    })(c.tensors());
  };
  // The block gives a result and what the gradient is multiplied by.
  rules["custom_gradient"] = one([](Call& c) {
    return custom_gradient([context = c.context, block = &c.statement.blocks[0]](const Tensor& x) {
      const Tensors given = run_block(context, *block, {x});
      return std::pair{given[0], [slope = given[1]](const Tensor& dy) { return dy * slope; }};
    })(c.tensor(0));
  });
  rules["call"] = [](Call& c) {
    return td::function(
        [context = c.context, block = &c.statement.blocks[0]](const Tensors& given) {
          return run_block(context, *block, given);
        })(c.tensors());
  };
}

Rules make_rules() {
  Rules rules;
  add_catalogue(rules);
  add_draws(rules);
  add_creation(rules);
  add_shapes(rules);
  add_contractions(rules);
  add_composites(rules);
  add_variables(rules);
  add_control_flow(rules);
  return rules;
}

void run(const Context& context, const std::vector<Statement>& body) {
  static const Rules rules = make_rules();
  for (const Statement& statement : body) {
    const auto rule = rules.find(statement.op);
    if (rule == rules.end()) throw UserError(cat("no op is called ", statement.op), Source::here());
    Call call(context, statement);
    Tensors given = rule->second(call);
    for (size_t i = 0; i < statement.outs.size(); ++i)
      context.scope->values[statement.outs[i]] = given.at(i);
  }
}

Tensors run_block(const Context& context, const Block& block, const Tensors& given) {
  const auto scope = std::make_shared<Scope>(Scope{context.scope, {}});
  for (size_t i = 0; i < block.params.size(); ++i) scope->values[block.params[i]] = given.at(i);
  const Context inner{context.world, context.sizes, scope};
  run(inner, block.body);
  Tensors results;
  for (const std::string& name : block.gives) results.push_back(find(*scope, name));
  return results;
}

}  // namespace

Dim size_of(const std::string& text, const Sizes& sizes) {
  const size_t plus = text.find_last_of("+-");
  if (plus != std::string::npos && plus > 0) {
    const Dim left = size_of(text.substr(0, plus), sizes);
    const Dim right = size_of(text.substr(plus + 1), sizes);
    return text[plus] == '+' ? left + right : left - right;
  }
  const size_t times = text.find('*');
  if (times != std::string::npos)
    return size_of(text.substr(0, times), sizes) * size_of(text.substr(times + 1), sizes);
  const auto open = sizes.find(text);
  return open != sizes.end() ? open->second : Dim(std::stoll(text));
}

DType dtype_named(const std::string& name, const Program& program) {
  const std::string& wanted = name == "float" ? program.dtype : name;
  for (int i = 0; i < kDTypes; ++i)
    if (const auto dtype = static_cast<DType>(i); cat(dtype) == wanted) return dtype;
  throw UserError(cat("no dtype is called ", wanted), Source::here());
}

Tensors interpret(const World& world, const Tensors& arguments) {
  const auto scope = std::make_shared<Scope>();
  scope->values = world.constants;
  for (size_t i = 0; i < arguments.size(); ++i)
    scope->values[world.program.arguments[i].name] = arguments[i];
  const auto sizes = std::make_shared<Sizes>();
  for (const SizeSource& source : world.program.size_sources)
    (*sizes)[source.name] = find(*scope, source.argument).shape()[source.axis];
  run({world, sizes, scope}, world.program.body);
  Tensors results;
  for (const std::string& name : world.program.results) results.push_back(find(*scope, name));
  return results;
}

}  // namespace tidemark::truth
