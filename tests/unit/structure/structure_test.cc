// Structures: which types are one, their leaves in order and by name, and what a key says of them.
#include "tidemark/api/structure.h"

#include <gtest/gtest.h>

#include <cmath>

namespace td = tidemark;
using td::Dim;
using td::Shape;
using td::Static;
using td::Tensor;
using td::detail::Fault;
using td::detail::fault;
using td::detail::field_count;
using td::detail::field_name;
using td::detail::Path;

namespace {

struct Batch {
  Tensor image, label;
};
struct Options {
  Batch batch;
  std::vector<Tensor> list;
  Static<int> depth;
  std::optional<Tensor> mask;
  Dim rows;
};
// No default, private fields.
class Hidden {
 public:
  explicit Hidden(Tensor first, Tensor second) : a_(std::move(first)), b_(std::move(second)) {}
  TIDEMARK_FIELDS(a_, b_)
  const Tensor& second() const { return b_; }

 private:
  Tensor a_, b_;
};
struct HoldsHidden {
  Tensor x;
  Hidden hidden;  // Has no default, and is not the first field.
};
struct Sixteen {
  Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct Seventeen {
  Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct Named17 {
  Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
  TIDEMARK_FIELDS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
};
struct One {
  Tensor x;
};
struct Empty {};
struct WithNumber {
  Tensor x;
  float rate;
};
struct WithConst {
  const Tensor x;
};
struct WithText {
  Tensor x;
  std::string name;
};
// One field of each kind: what has many constructors is still one field.
struct EveryKind {
  std::tuple<Tensor> one;
  std::tuple<Dim, Static<std::string>> two;
  std::pair<Tensor, std::optional<Dim>> pair;
  std::array<Tensor, 2> array;
  std::map<std::string, Batch> map;
  std::vector<std::optional<Batch>> list;
  std::optional<Static<int>> number;
  std::optional<std::tuple<Tensor>> maybe;
  Shape shape;
  td::DType dtype;
  Empty empty;
};
enum class Mode { train, eval };
struct Config {
  int depth;
  std::vector<bool> flags;
};

static_assert(td::Structure<Tensor> && td::Structure<Dim> && td::Structure<const Shape&> &&
              td::Structure<td::DType> && td::Structure<Static<Mode>> &&
              td::Structure<Static<Config>>);
static_assert(td::Structure<Batch> && td::Structure<Options> && td::Structure<Hidden> &&
              td::Structure<HoldsHidden> && td::Structure<Sixteen> && td::Structure<Named17> &&
              td::Structure<One> && td::Structure<Empty> && td::Structure<std::tuple<>>);
static_assert(td::Structure<std::map<std::string, std::pair<Tensor, std::optional<Tensor>>>>);
static_assert(td::Structure<std::tuple<std::array<Tensor, 3>, std::vector<std::vector<Batch>>>>);

static_assert(fault<float>() == Fault::number && fault<WithNumber>() == Fault::number);
static_assert(fault<std::tuple<Tensor, int>>() == Fault::number);
static_assert(fault<std::vector<std::optional<bool>>>() == Fault::number);
static_assert(fault<Seventeen>() == Fault::many_fields);
// None of these could be replaced in a copy, or be part of a key.
static_assert(fault<std::tuple<Tensor&>>() == Fault::other && fault<WithConst>() == Fault::other);
static_assert(fault<WithText>() == Fault::other && fault<Tensor*>() == Fault::other);
static_assert(fault<std::map<int, Tensor>>() == Fault::other);

static_assert(field_count<Batch>() == 2 && field_count<Options>() == 5);
static_assert(field_count<HoldsHidden>() == 2 && field_count<Sixteen>() == 16);
static_assert(td::Structure<EveryKind> && field_count<EveryKind>() == 11);
static_assert(field_name<EveryKind, 3>() == "array" && field_name<EveryKind, 10>() == "empty");
static_assert(field_count<One>() == 1 && field_count<Empty>() == 0);
static_assert(field_name<Batch, 0>() == "image" && field_name<Batch, 1>() == "label");
static_assert(field_name<Sixteen, 15>() == "p" && field_name<One, 0>() == "x");
static_assert(field_name<Hidden, 0>() == "a_" && field_name<Hidden, 1>() == "b_");

// The leaves as "path=value", values being integers.
template <class S>
std::vector<std::string> leaves(const S& structure, const Path& root = Path("")) {
  std::vector<std::string> found;
  const auto add = [&]<class Leaf>(const Leaf& leaf, const Path& path) {
    if constexpr (std::is_same_v<Leaf, Tensor>)
      found.push_back(path.text() + "=" + std::to_string(leaf.template item<int>()));
    else
      found.push_back(path.text() + "=size " + std::to_string(int64_t{leaf}));
  };
  td::for_each_leaf(structure, add, root);
  return found;
}

template <class S>
std::string key(const S& structure) {
  std::string text;
  td::detail::add_key(structure, Path::argument(0), text);
  return text;
}

using Lines = std::vector<std::string>;

TEST(Structure, LeavesAreNamedByWhereTheyStand) {
  EXPECT_EQ(leaves(Tensor(7), Path::argument(0)), (Lines{"argument 0=7"}));
  EXPECT_EQ(leaves(Batch{1, 2}, Path::argument(1)),
            (Lines{"argument 1.image=1", "argument 1.label=2"}));
  EXPECT_EQ(leaves(std::vector<Tensor>{4, 5}, Path::argument(12)),
            (Lines{"argument 12[0]=4", "argument 12[1]=5"}));
  EXPECT_EQ(leaves(std::tuple{Tensor(1), std::pair{Dim(5), Batch{2, 3}}}, Path("result")),
            (Lines{"result[0]=1", "result[1][0]=size 5", "result[1][1].image=2",
                   "result[1][1].label=3"}));
  EXPECT_EQ(leaves(std::map<std::string, Tensor>{{"b", 2}, {"a \"1\"", 1}}, Path("result")),
            (Lines{"result[\"a \\\"1\\\"\"]=1", "result[\"b\"]=2"}));
  EXPECT_EQ(leaves(Hidden(1, 2), Path("result")), (Lines{"result.a_=1", "result.b_=2"}));
}

TEST(Structure, WithoutARootNamesBeginWithTheField) {
  EXPECT_EQ(leaves(std::tuple<>()), Lines{});
  EXPECT_EQ(leaves(HoldsHidden{1, Hidden(2, 3)}), (Lines{"x=1", "hidden.a_=2", "hidden.b_=3"}));
}

TEST(Structure, FixedValuesAndAbsentOptionalsAreNoLeaves) {
  Options options{{1, 2}, {3, 4}, 5, std::nullopt, 6};
  EXPECT_EQ(leaves(options),
            (Lines{"batch.image=1", "batch.label=2", "list[0]=3", "list[1]=4", "rows=size 6"}));
  options.mask = 9;
  EXPECT_EQ(leaves(options), (Lines{"batch.image=1", "batch.label=2", "list[0]=3", "list[1]=4",
                                    "mask=9", "rows=size 6"}));
  EXPECT_EQ(leaves(std::tuple{Shape{1, 2}, td::f32, Static<bool>(true)}), Lines{});
}

TEST(Structure, TypesOfAFunctionHaveNames) {
  struct Local {
    Tensor inside;
    Batch batch;
  };
  EXPECT_EQ(leaves(Local{1, {2, 3}}), (Lines{"inside=1", "batch.image=2", "batch.label=3"}));
}

TEST(Structure, AllSixteenFieldsAreVisitedInOrder) {
  const Lines found = leaves(Sixteen{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  ASSERT_EQ(found.size(), 16U);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(found[static_cast<size_t>(i)],
              std::string(1, static_cast<char>('a' + i)) + "=" + std::to_string(i));
}

// Each count has a line of its own in fields().
#define TIDEMARK_TEST_WIDE(n, ...) \
  struct Wide##n {                 \
    Tensor __VA_ARGS__;            \
  };
TIDEMARK_TEST_WIDE(3, a, b, c)
TIDEMARK_TEST_WIDE(4, a, b, c, d)
TIDEMARK_TEST_WIDE(5, a, b, c, d, e)
TIDEMARK_TEST_WIDE(6, a, b, c, d, e, f)
TIDEMARK_TEST_WIDE(7, a, b, c, d, e, f, g)
TIDEMARK_TEST_WIDE(8, a, b, c, d, e, f, g, h)
TIDEMARK_TEST_WIDE(9, a, b, c, d, e, f, g, h, i)
TIDEMARK_TEST_WIDE(10, a, b, c, d, e, f, g, h, i, j)
TIDEMARK_TEST_WIDE(11, a, b, c, d, e, f, g, h, i, j, k)
TIDEMARK_TEST_WIDE(12, a, b, c, d, e, f, g, h, i, j, k, l)
TIDEMARK_TEST_WIDE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
TIDEMARK_TEST_WIDE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
TIDEMARK_TEST_WIDE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
#undef TIDEMARK_TEST_WIDE
template <class T, size_t... I>
constexpr bool named_by_alphabet(std::index_sequence<I...>) {
  return field_count<T>() == sizeof...(I) &&
         ((field_name<T, I>() == std::string_view(&"abcdefghijklmnop"[I], 1)) && ...);
}
template <class T>
constexpr bool named_by_alphabet() {
  return named_by_alphabet<T>(std::make_index_sequence<field_count<T>()>{});
}
static_assert(named_by_alphabet<Wide3>() && field_count<Wide3>() == 3);
static_assert(named_by_alphabet<Wide4>() && field_count<Wide4>() == 4);
static_assert(named_by_alphabet<Wide5>() && field_count<Wide5>() == 5);
static_assert(named_by_alphabet<Wide6>() && field_count<Wide6>() == 6);
static_assert(named_by_alphabet<Wide7>() && field_count<Wide7>() == 7);
static_assert(named_by_alphabet<Wide8>() && field_count<Wide8>() == 8);
static_assert(named_by_alphabet<Wide9>() && field_count<Wide9>() == 9);
static_assert(named_by_alphabet<Wide10>() && field_count<Wide10>() == 10);
static_assert(named_by_alphabet<Wide11>() && field_count<Wide11>() == 11);
static_assert(named_by_alphabet<Wide12>() && field_count<Wide12>() == 12);
static_assert(named_by_alphabet<Wide13>() && field_count<Wide13>() == 13);
static_assert(named_by_alphabet<Wide14>() && field_count<Wide14>() == 14);
static_assert(named_by_alphabet<Wide15>() && field_count<Wide15>() == 15);

TEST(Structure, KeysSayAllThatIsNoLeaf) {
  EXPECT_EQ(key(Tensor(1)), "");
  EXPECT_EQ(key(Batch{1, 2}), "");
  EXPECT_EQ(key(Dim(3)), "");
  EXPECT_EQ(key(Options{{1, 2}, {3, 4}, 5, std::nullopt, 6}),
            "argument 0.list: 2 items\nargument 0.depth: 5\nargument 0.mask: absent\n");
  EXPECT_EQ(key(std::map<std::string, std::vector<Tensor>>{{"a", {}}, {"b", {1}}}),
            "argument 0: keys \"a\" \"b\"\nargument 0[\"a\"]: 0 items\nargument 0[\"b\"]: 1 "
            "item\n");
  EXPECT_EQ(key(std::tuple{Shape{2, td::open}, td::boolean}),
            "argument 0[0]: [2, ?]\nargument 0[1]: bool\n");
}

TEST(Structure, KeysTellStaticValuesApart) {
  const auto text = [](const auto& value) { return td::detail::rest_text(Static(value)); };
  EXPECT_EQ(text(true), "true");
  EXPECT_EQ(text(-3), "-3");
  EXPECT_EQ(text(Mode::eval), "1");
  EXPECT_EQ(text(td::bf16), "bf16");
  EXPECT_EQ(text(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(text(std::string("a\n\"b\\")), "\"a\\n\\\"b\\\\\"");
  EXPECT_EQ(text(Config{2, {true, false}}), "{2, {true, false, }, }");
  EXPECT_EQ(text(std::tuple{1, std::optional<int>(), std::optional<int>(2)}), "{1, none, (2), }");
  EXPECT_NE(text(0.1), text(std::nextafter(0.1, 1.0)));
  EXPECT_NE(text(0.1F), text(std::nextafter(0.1F, 1.0F)));
  EXPECT_NE(text(0.0), text(-0.0));
  // A line break and the two characters that stand for one.
  EXPECT_NE(text(std::string("\n")), text(std::string("\\n")));
  EXPECT_NE(text(std::vector<std::string>{"a, b"}), text(std::vector<std::string>{"a", "b"}));
}

TEST(Structure, KeysTellWhatChanged) {
  using td::detail::key_change;
  const Options options{{1, 2}, {3}, 5, std::nullopt, 6};
  Options longer = options, deeper = options, masked = options;
  longer.list.push_back(4);
  deeper.depth = 15;
  masked.mask = 1;
  EXPECT_EQ(key_change(key(options), key(longer)), "argument 0.list: 1 item became 2 items");
  EXPECT_EQ(key_change(key(options), key(deeper)), "argument 0.depth: 5 became 15");
  EXPECT_EQ(key_change(key(deeper), key(options)), "argument 0.depth: 15 became 5");
  EXPECT_EQ(key_change(key(options), key(masked)), "argument 0.mask: absent became present");
  EXPECT_EQ(key_change(key(options), key(options)), "");
  EXPECT_EQ(key_change(key(Static<int>(1)), key(Static<int>(12))), "argument 0: 1 became 12");
  const std::map<std::string, std::vector<Tensor>> one = {{"a", {}}}, two = {{"a", {}}, {"b", {}}};
  EXPECT_EQ(key_change(key(one), key(two)), "argument 0: keys \"a\" became keys \"a\" \"b\"");
}

TEST(Structure, LeavesAreReplacedInACopy) {
  const Options options{{1, 2}, {3, 4}, 5, Tensor(6), 7};
  Options hollow = options;
  const std::vector<Tensor> taken = td::detail::take_tensors(hollow);
  ASSERT_EQ(taken.size(), 5U);
  EXPECT_EQ(taken[4].item<int>(), 6);
  EXPECT_FALSE(hollow.list[1].has_value());
  EXPECT_TRUE(hollow.mask.has_value());
  EXPECT_EQ(leaves(options)[3], "list[1]=4");

  const std::vector<Tensor> others = {10, 20, 30, 40, 50};
  const Options replaced = td::detail::with_tensors(hollow, others);
  EXPECT_EQ(leaves(replaced), (Lines{"batch.image=10", "batch.label=20", "list[0]=30", "list[1]=40",
                                     "mask=50", "rows=size 7"}));
  EXPECT_EQ(*replaced.depth, 5);
  EXPECT_FALSE(hollow.batch.image.has_value());
  EXPECT_EQ(td::detail::tensor_paths(hollow, Path("result")),
            (Lines{"result.batch.image", "result.batch.label", "result.list[0]", "result.list[1]",
                   "result.mask"}));

  EXPECT_EQ(td::detail::with_tensors(Hidden(1, 2), std::vector<Tensor>{8, 9}).second().item<int>(),
            9);
}

TEST(Static, ReadsAsItsValue) {
  const Static<int> depth = 3;
  int steps = 0;
  for (int i = 0; i < depth; ++i) ++steps;
  EXPECT_EQ(steps, 3);
  const Static<std::string> name = "relu";
  EXPECT_EQ(*name, "relu");
  EXPECT_EQ(name->size(), 4U);
  const Static<bool> off = false;
  EXPECT_FALSE(off);
}

}  // namespace
