#include "tidemark/base/json.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"

namespace tidemark {
namespace {

TEST(Json, QuotesWhateverAFileIsCalled) {
  EXPECT_EQ(json_quoted("a \"b\" \\ \n\x01"), R"("a \"b\" \\ \u000a\u0001")");
  EXPECT_EQ(json_quoted("π 😀"), "\"π 😀\"");
  // Latin 1, a half of a pair, a form longer than needed, an end too early.
  for (const std::string_view broken : {"\xE9t", "\xED\xA0\x80", "\xC0\xAF", "\xF0\x9F\x98"})
    EXPECT_NE(json_quoted(broken).find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_EQ(json_quoted("\xE9t"), "\"\xEF\xBF\xBDt\"");
}

TEST(Json, ReadsWhatItWrites) {
  const std::string text = "tab\t quote\" slash\\ nul-free \x1f π 😀";
  EXPECT_EQ(parse_json(json_quoted(text), "t").text, text);
}

TEST(Json, ReadsEveryKindOfValue) {
  const JsonValue value = parse_json(
      R"( {"a": [1, -2.5e3, true, false, null], "b": {"c": "x\u00e9\ud83d\ude00"}} )", "t");
  const JsonValue& list = *value.find("a");
  ASSERT_EQ(list.items.size(), 5U);
  EXPECT_EQ(list.items[0].number, 1);
  EXPECT_EQ(list.items[1].number, -2500);
  EXPECT_TRUE(list.items[2].boolean);
  EXPECT_EQ(list.items[3].kind, JsonValue::Kind::boolean);
  EXPECT_EQ(list.items[4].kind, JsonValue::Kind::null);
  EXPECT_EQ(value.find("b")->find("c")->text, "xé😀");
  EXPECT_EQ(value.find("none"), nullptr);
}

TEST(Json, SaysWhatIsWrongAndWhere) {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_json(text, "plan.json"); });
  };
  EXPECT_EQ(error("{\"a\": 1,\n \"b\" 2}"), "plan.json:2: expected ':', found '2'");
  EXPECT_EQ(error("[1, 2"), "plan.json:1: unexpected end of the text");
  EXPECT_EQ(error("[1] 2"), "plan.json:1: unexpected text after the value");
  EXPECT_EQ(error("{1: 2}"), "plan.json:1: a member has no name");
  EXPECT_EQ(error("\"a"), "plan.json:1: a string does not end");
  EXPECT_EQ(error("\"\\x\""), "plan.json:1: '\\x' is not an escape sequence");
  EXPECT_EQ(error("\"\\u12g4\""), "plan.json:1: \\u needs four hexadecimal digits");
  EXPECT_EQ(error("\"a\nb\""), "plan.json:1: a string has a control character in it");
  EXPECT_EQ(error("nan"), "plan.json:1: expected a value");
  EXPECT_EQ(error(""), "plan.json:1: unexpected end of the text");
  EXPECT_EQ(error(std::string(300, '[')), "plan.json:1: values are nested deeper than 200");
}

}  // namespace
}  // namespace tidemark
