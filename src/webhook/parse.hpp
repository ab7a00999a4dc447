// Reads the headers of each scheme. Pure, bounded, and fuzzed: tests/fuzz/webhook_headers.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settle/webhook_signature.hpp"

namespace settle::hooks {

// The private half of settle::webhook.
using namespace settle::webhook;

// What a request claims. Signatures that cannot be one of their kind (length, alphabet) are left out.
struct claim {
  std::string_view id;         // standard
  std::string_view time_text;  // as it was signed; stripe and standard
  std::int64_t time_seconds = 0;
  std::vector<std::string> codes;    // HMAC-SHA256, 32 bytes each
  std::vector<std::string> ed25519;  // 64 bytes each
};

struct parsed {
  std::optional<refusal> refused;
  claim what;
};

// The one header of this name. Nothing if it is not there; `twice` if there are several.
struct found_header {
  std::optional<std::string_view> value;
  bool twice = false;
};
found_header find_header(const std::vector<header>& all, std::string_view name);
bool same_name(std::string_view a, std::string_view b);

// Without blanks around it.
std::string_view trimmed(std::string_view text);

// Digits only, at most eleven: the year 5138.
std::optional<std::int64_t> unix_seconds(std::string_view text);

parsed parse_stripe(const request& what);
parsed parse_standard(const request& what);
parsed parse_hmac(const request& what, const signing& how);

}  // namespace settle::hooks
