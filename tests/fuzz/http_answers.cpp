// Fuzz entry for the client's parser of HTTP answers.
//
// The input is what comes over one connection after a request. However it is cut into pieces, the same answer
// is read and as many bytes are taken, or it is refused in the same way; what is read lies within the limits
// and has nothing that could not be sent on.
#include <algorithm>

#include "fuzz/entries.hpp"
#include "http/answer_parser.hpp"
#include "http/characters.hpp"

namespace settle::fuzz {
namespace {

using step = http::answer_parser::step;

constexpr http::answer_limits limits{.head_bytes_max = 300, .header_count_max = 8, .body_bytes_max = 100};

struct read_answer {
  step reached{};
  std::size_t taken = 0;
  bool keeps = false;
  http::response answer = {};
};

read_answer read(std::string_view bytes, std::size_t each, bool without_body) {
  http::answer_parser parser(limits, without_body);
  read_answer made;
  for (std::size_t at = 0; at < bytes.size() && parser.reached() == step::more; at += each) {
    const auto piece = bytes.substr(at, each);
    const auto taken = parser.feed(piece);
    require(taken <= piece.size() && (taken == piece.size() || parser.reached() != step::more));
    made.taken += taken;
  }
  made.reached = parser.reached() == step::more ? parser.end() : parser.reached();
  made.keeps = parser.keeps_connection();
  require(made.reached == step::more || made.reached == step::done || !parser.why().empty());
  made.answer = std::move(parser.answer());
  require(made.answer.body.size() <= limits.body_bytes_max);
  require(made.answer.headers.size() <= limits.header_count_max);
  return made;
}

bool same(const read_answer& left, const read_answer& right) {
  if (left.reached != right.reached) return false;
  if (left.reached != step::done) return true;
  return left.taken == right.taken && left.keeps == right.keeps &&
         left.answer.status == right.answer.status && left.answer.body == right.answer.body &&
         std::ranges::equal(left.answer.headers, right.answer.headers, [](const auto& a, const auto& b) {
           return a.name == b.name && a.value == b.value;
         });
}

}  // namespace

void http_answers(std::string_view bytes) {
  for (const bool without_body : {false, true}) {
    const auto whole = read(bytes, std::max<std::size_t>(bytes.size(), 1), without_body);
    for (const std::size_t each : {1, 2, 7}) require(same(whole, read(bytes, each, without_body)));
    if (whole.reached != step::done) continue;
    require(http::fault_of(whole.answer).empty());
    for (const auto one : whole.answer.headers) require(http::trimmed(one.value) == one.value);
    // What follows an answer is none of its business, unless only the end of the connection ends it.
    if (whole.taken == bytes.size()) continue;
    require(same(whole, read(bytes.substr(0, whole.taken), bytes.size(), without_body)));
  }
}

}  // namespace settle::fuzz
