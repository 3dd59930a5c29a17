#include <algorithm>

#include "tests/unit/tools/command_test.h"
#include "tidemark/base/json.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::tools {
namespace {

class Ops : public CommandTest {};

TEST_F(Ops, ListsTheWholeCatalogue) {
  const Ran ran = run("ops");
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const OpDef& op : catalogue())
    EXPECT_NE(ran.out.find("\n" + std::string(op.name) + " "), std::string::npos) << op.name;
  EXPECT_EQ(static_cast<size_t>(std::count(ran.out.begin(), ran.out.end(), '\n')),
            catalogue().size() + 1);
}

TEST_F(Ops, AreFoundByWords) {
  const Ran ran = run("ops HYPERBOLIC tanh");
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("\ntanh "), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("\nsum "), std::string::npos) << ran.out;
  const Ran none = run("ops quux");
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err,
            "tidemark: ops: none has all of these words; `tidemark ops` lists every op\n");
}

TEST_F(Ops, ComeAsJson) {
  const JsonValue all = parse_json(run("ops --json").out, "ops");
  ASSERT_EQ(all.items.size(), catalogue().size());
  for (size_t i = 0; i < all.items.size(); ++i) {
    const OpDef& op = catalogue()[i];
    EXPECT_EQ(all.items[i].find("name")->text, op.name);
    EXPECT_EQ(all.items[i].find("gradient")->boolean, op.grad != nullptr);
    EXPECT_FALSE(all.items[i].find("dtypes")->items.empty());
  }
  EXPECT_EQ(run("ops quux --json").out, "[]\n");
}

}  // namespace
}  // namespace tidemark::tools
