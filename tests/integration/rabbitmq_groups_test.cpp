// Several groups on a topic whose exchange somebody deletes, again and again, while several publishers use
// it. What was confirmed has reached all of them, each key in its order.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "settle/driver/broker.hpp"
#include "support/rabbitmq_load.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct rabbitmq_groups : rabbitmq_under_load {
  rabbitmq::options options() const {
    auto with = broker_options({});
    with.queues = 4;
    return with;
  }
};

// Publishes batches with keys of its own, and sends again what was not confirmed before anything else, as
// relays do.
class endless_publisher {
 public:
  static constexpr int keys = 16, batch = 64;

  endless_publisher(std::string name, std::unique_ptr<broker> to)
      : name_(std::move(name)),
        to_(std::move(to)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // Until all of it is confirmed.
  void stop() { thread_ = {}; }

  std::atomic<std::int64_t> confirmed = 0;
  std::atomic<std::int64_t> failed_calls = 0;

 private:
  void run(const std::stop_token& stop) {
    std::vector<message> open;
    while (!stop.stop_requested() || !open.empty()) {
      while (!stop.stop_requested() && open.size() < batch) open.push_back(next());
      const auto results = to_->publishing().publish(open);
      std::vector<message> again;
      for (std::size_t i = 0; i < open.size(); ++i)
        if (results[i].status != publish_status::confirmed) again.push_back(std::move(open[i]));
      confirmed += static_cast<std::int64_t>(open.size() - again.size());
      if (!again.empty()) ++failed_calls;
      open = std::move(again);
    }
  }
  message next() {
    message made;
    made.key = fmt::format("{}-{}", name_, number_ % keys);
    made.payload = std::to_string(number_ / keys);
    made.id = made.key + "/" + made.payload;
    made.topic = "orders";
    made.source = "test";
    made.type = "order.placed";
    ++number_;
    return made;
  }

  std::string name_;
  std::unique_ptr<broker> to_;
  std::int64_t number_ = 0;
  std::jthread thread_;
};

void expect_complete(const std::map<std::string, std::vector<std::string>>& got, std::int64_t confirmed) {
  std::int64_t distinct = 0;
  int gaps = 0;
  for (const auto& [key, numbers] : got) {
    distinct += static_cast<std::int64_t>(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) gaps += numbers[i] != std::to_string(i);
  }
  EXPECT_EQ(distinct, confirmed);
  EXPECT_EQ(gaps, 0) << "out of their order";
}

// Proves O3, O4, O7
TEST_F(rabbitmq_groups, all_get_what_was_confirmed_while_their_exchange_is_deleted_under_load) {
  const std::vector<std::string> groups{"warehouse", "auditor", "archive"};
  const auto looking = rabbitmq::open(url, options());
  for (const auto& one : groups) looking->create_group(one, {"orders"});
  std::int64_t confirmed = 0, failed_calls = 0;
  {
    std::vector<std::unique_ptr<endless_publisher>> all;
    for (int i = 0; i < 3; ++i)
      all.push_back(
          std::make_unique<endless_publisher>(fmt::format("p{}", i), rabbitmq::open(url, options())));
    const auto each_goes_on = [&] {
      for (const auto& one : all) {
        const auto before = one->confirmed.load();
        await([&] { return one->confirmed > before; });
      }
    };
    each_goes_on();
    for (int i = 0; i < 8 * lasting(1s).count(); ++i) {
      delete_exchange(names().exchange("orders"));
      each_goes_on();
    }
    for (auto& one : all) one->stop();
    for (const auto& one : all) {
      confirmed += one->confirmed;
      failed_calls += one->failed_calls;
    }
  }
  EXPECT_GT(failed_calls, 0) << "nobody has noticed a deletion";
  for (const auto& one : groups) {
    SCOPED_TRACE(one);
    expect_complete(received(*looking, one), confirmed);
  }
}

}  // namespace
}  // namespace settle::test
