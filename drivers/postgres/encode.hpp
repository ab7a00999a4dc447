// Values as parameters of libpq: text, whose type the server infers, and bytes as they are.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "postgres/handle.hpp"
#include "settle/value.hpp"

namespace settle::inline v0::postgres {

// Points into the values that it was made of. Reused from statement to statement.
class parameter_buffer {
 public:
  // Throws invalid_argument for text with a NUL inside, which PostgreSQL cannot hold.
  void assign(std::span<const value> values);

  // About: how much of it goes over the line.
  std::size_t bytes() const { return std::accumulate(lengths_.begin(), lengths_.end(), std::size_t{0}); }

  int count() const { return static_cast<int>(data_.size()); }
  const char* const* data() const { return data_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }
  const Oid* types() const { return types_.data(); }  // 0: to be inferred

 private:
  struct writer;

  std::vector<const char*> data_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  std::vector<Oid> types_;
  std::vector<std::array<char, 32>> numbers_;
};

}  // namespace settle::inline v0::postgres
