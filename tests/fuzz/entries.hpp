// The fuzz entries: parsers of what strangers send, and of what a damaged file may hold. Each takes any
// bytes, and ends the process if a property of its parser does not hold.
//
// libfuzzer.cpp makes a fuzzer of each (`make fuzz`); the tests run them over their corpus and seeded
// mutations of it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

namespace settle::fuzz {

void http_answers(std::string_view input);
void http_requests(std::string_view input);
void idempotency_key(std::string_view input);
void keys_api(std::string_view input);
void packed_lists(std::string_view input);
void request_values(std::string_view input);
void webhook_headers(std::string_view input);

inline void require(bool holds, std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u does not hold\n", where.file_name(), static_cast<unsigned>(where.line()));
  std::abort();
}

}  // namespace settle::fuzz
