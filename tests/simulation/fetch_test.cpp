// A read that fails in the middle of a fetch.
#include <gtest/gtest.h>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "simulation/sim_vfs.hpp"

namespace settle::sim {
namespace {

// Found by the simulation: what had been read before the failure counted as delivered, and later messages
// of the same key overtook it. Proves O4, V3
TEST(fetch, a_read_that_fails_leaves_no_gap) {
  int failed = 0;
  for (int nth = 1; nth <= 40; ++nth) {
    machine computer(1);
    process one(computer, "one");
    std::vector<std::string> sent;
    {
      process publisher(computer, "publisher");
      auto broker = sqlite::open_broker("b.db", {.partitions = 4, .vfs = publisher.vfs()});
      for (int i = 0; i < 40; ++i) {
        message m;
        m.id = std::to_string(i);
        m.topic = "t";
        m.key = "key-" + std::to_string(i % 8);
        m.payload = std::string(2000, 'x');
        sent.push_back(m.id);
        broker->publishing().publish({&m, 1});
      }
    }
    auto broker = sqlite::open_broker("b.db", {.vfs = one.vfs()});
    auto member = broker->subscribe({.group = "g", .topics = {"t"}});
    member->fetch(0);  // takes the partitions
    computer.files.faults.failing_read = nth;
    std::vector<std::string> got;
    for (int turn = 0; turn < 10; ++turn) {
      try {
        for (const auto& one_delivery : member->fetch(100).deliveries) got.push_back(one_delivery.content.id);
      } catch (const error&) {
        ++failed;
      }
    }
    EXPECT_EQ(got, sent) << "the read number " << nth << " failed";
  }
  EXPECT_GT(failed, 5);
}

}  // namespace
}  // namespace settle::sim
