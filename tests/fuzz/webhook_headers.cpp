// Fuzz entry for the webhook header parsers.
//
// The input is a request as lines, "name: value" until an empty line, then the body; it goes through every
// scheme. Nothing may crash, and nothing may be accepted: the keys are not known to the input.
#include <string_view>

#include "fuzz/entries.hpp"
#include "settle/webhook_signature.hpp"
#include "webhook/reading.hpp"

namespace settle::fuzz {
namespace {

webhook::request request_of(std::string_view text) {
  webhook::request made;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) break;
    const auto colon = line.find(':');
    made.headers.push_back({line.substr(0, colon),
                            colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1)});
  }
  made.body = text;
  return made;
}

}  // namespace

void webhook_headers(std::string_view input) {
  using webhook::scheme;
  static const webhook::verifier all[] = {
      webhook::verifier({.how = scheme::stripe, .keys = {"unknown to the input"}}),
      webhook::verifier({.how = scheme::standard,
                         .keys = {"whsec_dW5rbm93biB0byB0aGUgaW5wdXQh",
                                  "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="}}),
      webhook::verifier({.how = scheme::hmac, .keys = {"unknown to the input"}}),
      webhook::verifier({.how = scheme::hmac,
                         .keys = {"unknown to the input"},
                         .header = "X-Signature",
                         .encoding = webhook::signature_encoding::base64,
                         .prefix = ""})};
  static const webhook::source sources[] = {webhook::stripe("stripe", {"key"}),
                                            webhook::standard("crm", {"key"})};
  const auto made = request_of(input);
  const timestamp now(std::chrono::seconds(1'614'265'330));
  for (const auto& one : all) require(!one.check(made, now).accepted());
  for (const auto& one : sources) {
    const auto read = hooks::read_event(one, made);
    if (!read.what) continue;
    require(!read.what->id.empty() && read.what->id.size() <= webhook::limits::id_bytes_max);
    require(read.what->body == made.body);
  }
}

}  // namespace settle::fuzz
