#include <algorithm>

#include "tests/unit/tools/command_test.h"
#include "tidemark/base/json.h"
#include "tidemark/calls/callables.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"

namespace tidemark::tools {
namespace {

class Ops : public CommandTest {};

TEST_F(Ops, ListsTheWholeCatalogue) {
  const Ran ran = run("ops");
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const OpDef& op : catalogue()) {
    const std::string space = op.family == Family::linalg ? "linalg::" : "";
    EXPECT_NE(ran.out.find("\n" + space + std::string(op.name) + " "), std::string::npos)
        << op.name;
  }
  for (const Callable& call : callables())
    EXPECT_NE(ran.out.find("\n" + std::string(call.name) + " "), std::string::npos) << call.name;
}

TEST_F(Ops, AreFoundByWords) {
  const Ran ran = run("ops HYPERBOLIC tanh");
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("\ntanh "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\n  td::tanh(x: tensor) -> tensor\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("\nsum "), std::string::npos) << ran.out;
  const Ran none = run("ops quux");
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err,
            "tidemark: ops: no op has all of these words; `tidemark ops` lists every op\n");
}

TEST_F(Ops, ComeAsJson) {
  const JsonValue all = parse_json(run("ops --json").out, "ops");
  ASSERT_GT(all.items.size(), callables().size());
  for (size_t i = 0; i < callables().size(); ++i) {
    const Callable& call = callables()[i];
    EXPECT_EQ(all.items[i].find("name")->text, call.name);
    EXPECT_EQ(all.items[i].find("brief")->text, call.brief);
    EXPECT_EQ(all.items[i].find("arguments")->items.size(), call.argument_list().size());
    if (call.op == nullptr) continue;
    EXPECT_EQ(all.items[i].find("gradient")->boolean, call.op->grad != nullptr);
    EXPECT_FALSE(all.items[i].find("dtypes")->items.empty());
  }
  EXPECT_EQ(run("ops quux --json").out, "[]\n");
}

TEST(Callables, HaveArgumentsWithKindsAndDefaults) {
  const auto find = [](std::string_view name) {
    return *std::find_if(callables().begin(), callables().end(),
                         [&](const Callable& call) { return call.name == name; });
  };
  const std::vector<Argument> pool = find("max_pool").argument_list();
  ASSERT_EQ(pool.size(), 5u);
  EXPECT_EQ(pool[0].name, "x");
  EXPECT_EQ(pool[0].fallback, "");
  EXPECT_EQ(pool[1].fallback, "[2, 2]");
  EXPECT_EQ(pool[2].fallback, "none");
  EXPECT_EQ(pool[3].kind, "valid|same|pairs");
  EXPECT_EQ(pool[4].fallback, "nhwc");
  EXPECT_EQ(find("random::state").argument_list().size(), 0u);
  EXPECT_EQ(find("tanh").op, &def_of(&tanh));
}

TEST(Callables, HaveASentenceEach) {
  for (const Callable& call : callables()) {
    ASSERT_FALSE(call.brief.empty()) << call.name;
    EXPECT_EQ(call.brief.back(), '.') << call.name;
  }
}

}  // namespace
}  // namespace tidemark::tools
