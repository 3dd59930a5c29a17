#include "tidemark/function/decision_text.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace tidemark::detail {
namespace {

// Decisions of one layer, or of one line outside of layers.
struct Place {
  std::string layer;
  std::vector<std::string> lines;
  std::map<std::string, int64_t> ops;  // How often each runs again.
  Bytes bytes;
  double more_work = 0;
};

void add_decision(Place& place, const PlanDecision& decision) {
  place.layer = decision.layer;
  place.ops[decision.op] += decision.times;
  place.bytes = place.bytes + decision.bytes;
  place.more_work += decision.more_work;
  if (std::find(place.lines.begin(), place.lines.end(), decision.line) == place.lines.end())
    place.lines.push_back(decision.line);
}

// Largest first.
std::vector<Place> places_of(const std::vector<PlanDecision>& decisions) {
  std::map<std::pair<std::string, std::string>, Place> found;
  for (const PlanDecision& each : decisions) {
    if (each.op.empty()) continue;
    add_decision(found[{each.layer, each.layer.empty() ? each.line : ""}], each);
  }
  std::vector<Place> places;
  for (auto& [key, place] : found) places.push_back(std::move(place));
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.bytes > b.bytes; });
  return places;
}

std::string in_words(int64_t number) {
  constexpr const char* words[] = {"two", "three", "four", "five", "six", "seven", "eight", "nine"};
  return number >= 2 && number <= 9 ? words[number - 2] : std::to_string(number);
}

std::string plural(const std::string& name) {
  if (name.ends_with("s") || name.ends_with("x") || name.ends_with("h")) return name + "es";
  if (name.ends_with("ly")) return name.substr(0, name.size() - 1) + "ies";
  return name + "s";
}

// "gelu", "two matmuls", "a group of multiply + add".
std::string op_text(const std::string& op, int64_t times) {
  const bool is_group = op.find(" + ") != std::string::npos;
  if (times == 1) return is_group ? "a group of " + op : op;
  return cat(in_words(times), ' ', is_group ? "groups of " + op : plural(op));
}

// "a", "a and b", "a, b and c"; of many, the first four.
std::string enumeration(const std::vector<std::string>& items) {
  constexpr size_t most = 4;
  const size_t shown = items.size() > most ? most - 1 : items.size();
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == items.size();
    text += cat(i == 0 ? "" : is_last ? " and " : ", ", items[i]);
  }
  return shown == items.size() ? text : cat(text, " and ", items.size() - shown, " more");
}

std::string ops_text(const Place& place) {
  std::vector<std::string> items;
  for (const auto& [op, times] : place.ops) items.push_back(op_text(op, times));
  return enumeration(items);
}

std::string where_text(const Place& place) {
  const std::string lines = enumeration(place.lines);
  if (place.layer.empty()) return lines.empty() ? "" : cat(" at ", lines);
  return cat(" of ", place.layer, lines.empty() ? "" : cat(" (", lines, ")"));
}

std::string effect_text(Bytes bytes, double more_work) {
  return cat("frees ", bytes, " meanwhile, ", more_work_text(more_work));
}

// Of the places from `first` on.
std::string rest_text(const std::vector<Place>& places, size_t first) {
  Bytes bytes;
  double more_work = 0;
  for (size_t i = first; i < places.size(); ++i) {
    bytes = bytes + places[i].bytes;
    more_work += places[i].more_work;
  }
  return cat("and ", places.size() - first, " more: ", effect_text(bytes, more_work));
}

}  // namespace

std::string more_work_text(double share) {
  if (share <= 0) return "no more work";
  if (share < 0.0005) return "less than 0.1 % more work";
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %% more work", 100 * share);
  return text;
}

std::vector<std::string> decision_sentences(const std::vector<PlanDecision>& decisions,
                                            size_t most) {
  std::vector<std::string> sentences;
  for (const PlanDecision& each : decisions)
    if (each.op.empty())
      sentences.push_back(each.line.empty() ? each.what : cat(each.what, " at ", each.line));
  const std::vector<Place> places = places_of(decisions);
  const size_t shown = places.size() > most ? most - 1 : places.size();
  for (size_t i = 0; i < shown; ++i) {
    const Place& place = places[i];
    sentences.push_back(cat("recomputes ", ops_text(place), where_text(place), ": ",
                            effect_text(place.bytes, place.more_work)));
  }
  if (shown < places.size()) sentences.push_back(rest_text(places, shown));
  return sentences;
}

}  // namespace tidemark::detail
