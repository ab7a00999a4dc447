// What a connection's bytes are read as, in pieces of any size.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "http/refusal.hpp"
#include "settle/http.hpp"

namespace settle::fuzz {

struct read_request {
  http::request asked;
  int version = 0;
  bool chunked = false;
};

struct connection {
  std::vector<read_request> requests;
  http::refusal refused = {};
};

// `first` bytes at once, then pieces of `each`, and what ends a head that is open.
connection read_in_pieces(std::string_view bytes, std::size_t first, std::size_t each);

bool same(const connection& left, const connection& right);

}  // namespace settle::fuzz
