// The bug of the HTTP client that the zoo keeps, found as the real code is checked.
#include <gtest/gtest.h>

#include "base/zoo.hpp"
#include "settle/http_client.hpp"
#include "support/stub_server.hpp"

namespace settle::test {
namespace {

// How often a request arrives whose kept connection ends without an answer.
std::size_t arrivals_with(zoo::bug which) {
  zoo::present = which;
  stub_server stub([](stub_server::line& c) {
    c.request();
    c.answer("yes");
    c.request();  // and no answer
  });
  const http::client client;
  const http::client_request charge{.method = "POST", .url = stub.url("/charges"), .body = "42 euros"};
  client.send(charge);
  const auto before = stub.requests().size();
  client.send(charge);
  zoo::present = zoo::bug::none;
  return stub.requests().size() - before;
}

// Proves V3, S6
TEST(zoo_http, a_client_that_sends_again_what_may_have_been_done_is_found) {
  EXPECT_EQ(arrivals_with(zoo::bug::none), 1U);
  EXPECT_EQ(arrivals_with(zoo::bug::request_sent_again), 2U);
}

}  // namespace
}  // namespace settle::test
