// What the headers say about the message itself. Pure.
//
// A request whose length two readers could understand differently is refused, whatever the more lenient
// reading of the standard is: in front of us or behind us may stand somebody who reads it the other way.
#pragma once

#include <cstdint>

#include "http/refusal.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

struct framing {
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  std::uint64_t content_length = 0;
  bool has_body() const { return chunked || content_length > 0; }
};

// `version`: 10 or 11.
refusal read_framing(int version, const header_list& headers, framing& into);

}  // namespace settle::inline v0::http
