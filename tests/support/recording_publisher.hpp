// A destination that remembers what it was given, and refuses when told.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "settle/driver/broker.hpp"

namespace settle::test {

class recording_publisher final : public publisher {
 public:
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    if (const auto once = std::exchange(before_publish, nullptr)) once();
    std::vector<publish_result> results(batch.size());
    std::set<std::pair<std::string, std::string>> failed;  // of a topic and key no later message is stored
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& m = batch[i];
      if (refuse) results[i] = refuse(m);
      if (results[i].status == publish_status::confirmed && failed.contains({m.topic, m.key}))
        results[i] = {publish_status::destination_failed, "behind another"};
      if (results[i].status == publish_status::confirmed)
        seen.push_back(m);
      else if (!m.key.empty())
        failed.emplace(m.topic, m.key);
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
