// Ending while requests are under way.
#include <future>

#include "support/http_world.hpp"

namespace settle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::get_of;

class http_drain : public test::http_world {};

TEST_F(http_drain, lets_requests_end_closes_idle_connections_and_accepts_nobody) {
  start();
  auto idle = connect();
  EXPECT_EQ(idle.ask(get_of("/quick")).status, 200);
  auto fresh = connect();
  auto busy = connect();
  busy.send(get_of("/gate"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto drained = std::async(std::launch::async, [&] { return server_->drain(seconds(20)); });
  EXPECT_TRUE(idle.ends());
  EXPECT_TRUE(fresh.ends());
  EXPECT_FALSE(connect().connected());
  EXPECT_EQ(drained.wait_for(milliseconds(50)), std::future_status::timeout) << "one is still under way";
  gate_.open();
  const auto answer = busy.answer();
  EXPECT_EQ(answer.body, "passed");
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(busy.ends());
  busy.finish();
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(handled_, 1);
}

TEST_F(http_drain, takes_the_rest_of_a_request_that_has_begun) {
  start();
  auto client = connect();
  client.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
  auto other = connect();
  EXPECT_EQ(other.ask(get_of("/slow")).status, 200) << "so the first has been read";
  auto drained = std::async(std::launch::async, [&] { return server_->drain(seconds(20)); });
  EXPECT_TRUE(other.ends());
  client.send("cd");
  EXPECT_EQ(client.answer().body, "POST /slow [abcd]");
  client.finish();
  EXPECT_TRUE(drained.get());
}

TEST_F(http_drain, cancels_after_its_deadline_and_says_so) {
  start();
  auto busy = connect();
  busy.send(get_of("/gate"));
  ASSERT_TRUE(gate_.wait_for(1));
  EXPECT_FALSE(server_->drain(milliseconds(50)));
  EXPECT_TRUE(busy.ends());
  gate_.open();
  server_.reset();
  EXPECT_EQ(handled_, 100) << "the handler was told";
}

TEST_F(http_drain, can_be_asked_for_twice_and_hurried) {
  start();
  auto busy = connect();
  busy.send(get_of("/gate"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto patient = std::async(std::launch::async, [&] { return server_->drain(std::chrono::hours(1)); });
  EXPECT_FALSE(server_->drain(milliseconds(20)));
  EXPECT_FALSE(patient.get());
  EXPECT_FALSE(server_->drain(seconds(1)));
  gate_.open();
}

TEST_F(http_drain, of_nothing_is_over_at_once) {
  start();
  expect_good_service();
  EXPECT_TRUE(server_->drain(seconds(20)));
}

}  // namespace
}  // namespace settle
