// Bytes of a connection to requests, with Boost.Beast's parser inside, and stricter than it.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "http/refusal.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

struct parser_limits {
  std::size_t request_line_bytes_max;
  std::size_t header_bytes_max;
  std::size_t header_count_max;
};

class request_parser {
 public:
  enum class step { more, head, done };
  struct progress {
    std::size_t consumed = 0;
    step reached = step::more;
    refusal refused = {};
  };

  explicit request_parser(const parser_limits& limits);
  ~request_parser();

  // From here on the next request, which is written into `into`: method, target, headers, body.
  void begin(request& into);

  // Reads what it can. Stops after the head, so that the caller can look at it and call limit_body(), and
  // after the body. Bytes that were not consumed have to be given again, with those that follow.
  progress feed(std::string_view bytes);

  void limit_body(std::size_t bytes_max);
  int version() const;    // 10 or 11, after the head
  bool is_begun() const;  // a byte of this request has come

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace settle::inline v0::http
