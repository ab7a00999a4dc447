#include "gateway/fate.hpp"

#include <string>

namespace shop {
namespace {

// A number from 0 to below 1 that follows from all of it (FNV-1a, then a finishing mix).
double drawn(std::uint64_t seed, std::string_view what, std::string_view about) {
  std::uint64_t hash = 14695981039346656037ULL ^ seed;
  for (const auto text : {what, about})
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ULL;
  hash ^= hash >> 33;
  return static_cast<double>(hash >> 11) * 0x1.0p-53;
}

}  // namespace

fate fate_of(const gateway_moods& moods, std::string_view method, std::string_view charge) {
  constexpr int many = 4;
  if (method.starts_with("card:"))
    return {.declined = method == "card:declined",
            .silent = method == "card:silent",
            .late = method == "card:late",
            .copies = method == "card:duplicated" ? many : 1,
            .forged = method == "card:forged"};
  const auto is = [&](std::string_view what, double part) { return drawn(moods.seed, what, charge) < part; };
  return {.declined = is("declined", moods.declined),
          .silent = is("silent", moods.silent),
          .late = is("late", moods.late),
          .copies = is("duplicated", moods.duplicated) ? many : 1,
          .forged = is("forged", moods.forged)};
}

call_fate call_fate_of(const gateway_moods& moods, std::uint64_t draw) {
  const auto text = std::to_string(draw);
  return {.fails = drawn(moods.seed, "failing", text) < moods.failing,
          .loses_answer = drawn(moods.seed, "lost_answer", text) < moods.lost_answer};
}

}  // namespace shop
