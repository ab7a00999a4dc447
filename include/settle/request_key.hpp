// The key of an idempotent request: what the header Idempotency-Key carries.
//
//   const auto key = settle::request_key::make();          // when the user's action begins, not per attempt
//   request.set("Idempotency-Key", key.header());          // "0190f3c2-…", quoted
//
//   const auto read = settle::parse_request_key(request["Idempotency-Key"]);   // the server's side
//   if (!read.key) return problem(400, to_string(read.refused));
//
// A key is 1 to 255 printable ASCII characters. On the wire it is a structured-field string, quoted and with
// escapes, as draft-ietf-httpapi-idempotency-key-header wants it; many clients and servers (Stripe) use it
// bare. Both forms name the same key. All functions here are pure but make(); values may be shared between
// threads.
#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

inline constexpr std::size_t request_key_bytes_max = 255;

enum class key_form {
  quoted,  // a structured-field string, with " and \ escaped
  bare,    // as it is; without spaces, commas and quotes, which would make one value look like several or
           // quoted
};

class request_key {
 public:
  // A new one: a UUID from the environment's ids.
  static request_key make(const environment& env = {});

  // A key that the application has already, such as a checkout session's id. Throws invalid_argument unless
  // it is 1 to 255 printable ASCII characters.
  explicit request_key(std::string_view text);

  const std::string& text() const noexcept { return text_; }

  // The value of the header. Throws invalid_argument for a key that cannot be bare.
  std::string header(key_form form = key_form::quoted) const;

  friend auto operator<=>(const request_key&, const request_key&) = default;

 private:
  std::string text_;
};

enum class key_refusal {
  none,
  empty,          // nothing, or ""
  too_long,       // more than request_key_bytes_max characters
  not_printable,  // a control character, or one beyond ASCII
  not_closed,     // a quote at the beginning and none at the end
  bad_escape,     // a backslash before something else than " and backslash
  trailing_text,  // something after the closing quote: parameters, or a second value
  needs_quotes,   // a space, comma or quote in a bare value: two values joined, or half of a quoted one
};
std::string_view to_string(key_refusal why);  // stable, for problem documents and logs

struct parsed_request_key {
  std::optional<request_key> key = std::nullopt;
  key_refusal refused = key_refusal::none;
};

// Reads the header's value in either form. Spaces and tabs around it do not count. A value that is not
// exactly one key is refused: to guess would make two requests out of one, or one of two. Looks at no more of
// a long value than a key may have.
parsed_request_key parse_request_key(std::string_view header_value);

}  // namespace settle::inline v0

#pragma GCC visibility pop
