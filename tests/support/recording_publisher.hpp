// A destination that remembers what it was given, and refuses when told.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "settle/broker.hpp"

namespace settle::test {

class recording_publisher final : public publisher {
 public:
  std::vector<publish_result> publish(std::span<const message> batch) override {
    if (const auto once = std::exchange(before_publish, nullptr)) once();
    std::vector<publish_result> results(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (refuse && refuse(batch[i]).status != publish_status::confirmed)
        results[i] = refuse(batch[i]);
      else
        seen.push_back(batch[i]);
    }
    ++calls;
    return results;
  }

  std::vector<std::string> payloads() const {
    std::vector<std::string> out;
    for (const auto& m : seen) out.push_back(m.payload);
    return out;
  }

  std::vector<message> seen;
  std::function<publish_result(const message&)> refuse;
  std::function<void()> before_publish;  // once
  int calls = 0;
};

}  // namespace settle::test
