#include "broker/admission.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

message made(std::string topic, std::string key, std::string type = "t") {
  message one;
  one.id = "id";
  one.topic = std::move(topic);
  one.key = std::move(key);
  one.type = std::move(type);
  return one;
}

using indices = std::vector<std::size_t>;

// Proves O4
TEST(admission, refuses_what_cannot_be_read_back_and_what_would_overtake_it) {
  const std::vector<message> batch{made("orders", "a"), made("orders", "b", "new\nline"), made("orders", "b"),
                                   made("stock", "b"),  made("orders", "", "new\nline"),  made("orders", "")};
  const auto judged = admit(batch);
  EXPECT_EQ(judged.accepted, (indices{0, 3, 5}));
  for (const std::size_t refused : {1, 2, 4}) {
    EXPECT_EQ(judged.results[refused].status, publish_status::message_rejected);
    EXPECT_FALSE(judged.results[refused].reason.empty());
  }
}

TEST(admission, asks_the_broker_too) {
  const std::vector<message> batch{made("no", "a"), made("no", "a"), made("yes", "a")};
  int asked = 0;
  const auto judged = admit(batch, [&](const message& m) {
    ++asked;
    return m.topic == "no" ? "not this topic" : std::string();
  });
  EXPECT_EQ(judged.accepted, indices{2});
  EXPECT_EQ(judged.results[0].reason, "not this topic");
  EXPECT_EQ(asked, 2) << "what is refused for another's sake is not looked at";
}

}  // namespace
}  // namespace settle
