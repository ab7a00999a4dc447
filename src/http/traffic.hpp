// Counts of the server, collected here and added to the counters now and then: an addition costs more than
// answering a quick request. Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "settle/environment.hpp"
#include "settle/http.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0::http {

class traffic {
 public:
  explicit traffic(const environment& env) : env_(env) {}

  // `path`: the number of the pattern, 0 for none. The pattern may be gone before its counts are flushed.
  void request(std::size_t path, std::string_view pattern, std::string_view method, int status,
               duration took);
  void refused_request(std::string_view reason);
  void opened() { ++opened_; }
  void closed() { ++closed_; }
  void refused_connection() { ++refused_; }

  bool has_counts() const {
    return opened_ + closed_ + refused_ > 0 || !requests_.empty() || !reasons_.empty();
  }
  void flush();

 private:
  environment env_;
  std::vector<std::string> patterns_{"other"};
  std::unordered_map<std::uint64_t, time_counts> requests_;  // by path, method and status class
  std::map<std::string_view, std::int64_t> reasons_;
  std::int64_t opened_ = 0;
  std::int64_t closed_ = 0;
  std::int64_t refused_ = 0;
};

}  // namespace settle::inline v0::http
