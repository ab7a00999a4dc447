// apps/shop/openapi.json and the services: what it describes is there, and what is there it describes.
#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "support/shop_world.hpp"

namespace settle {
namespace {

using shop_api = test::shop_world;

std::string file(const std::string& path) {
  std::ifstream in(SETTLE_SOURCE "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

boost::json::object described() {
  return boost::json::parse(file("apps/shop/openapi.json")).as_object().at("paths").as_object();
}

std::string in_capitals(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return word;
}

TEST_P(shop_api, answers_everything_that_its_description_has) {
  start();
  std::size_t asked = 0;
  for (const auto& path : described())
    for (const auto& operation : path.value().as_object()) {
      const auto service = boost::json::value_to<std::string>(operation.value().at("tags").at(0));
      const auto target = std::regex_replace(std::string(path.key()), std::regex("\\{[a-z]+\\}"), "x");
      const auto answer =
          ask(service, in_capitals(operation.key()), target, "ann", "{}", "key-" + std::to_string(++asked));
      const auto status = std::to_string(answer.status);
      EXPECT_NE(answer.status, 405) << target;
      const auto& responses = operation.value().at("responses").as_object();
      EXPECT_TRUE(responses.contains(status))
          << operation.key() << " " << target << " says " << status << " " << answer.body;
      if (answer.status < 400 || answer.body.empty()) continue;
      const auto code = shop::read_json(answer.body).text("code");
      const auto description = boost::json::value_to<std::string>(responses.at(status).at("description"));
      EXPECT_NE(description.find(code), std::string::npos) << target << " says " << code;
    }
  EXPECT_GE(asked, 16U);
}

TEST(shop_api_file, describes_every_route_of_the_services) {
  std::set<std::string> all;
  for (const auto* source :
       {"order/order.cpp", "order/cart.cpp", "checkout/checkout.cpp", "payment/payment.cpp",
        "warehouse/warehouse.cpp", "notification/notification.cpp"}) {
    const auto text = file(std::string("apps/shop/") + source);
    const std::regex route("to\\.(get|put|post|del)\\(\\s*\"([^\"]+)\"");
    for (std::sregex_iterator at(text.begin(), text.end(), route), end; at != end; ++at)
      all.insert(std::string((*at)[1] == "del" ? "delete" : (*at)[1].str()) + " " + (*at)[2].str());
  }
  const auto paths = described();
  for (const auto& one : all) {
    const auto method = one.substr(0, one.find(' ')), path = one.substr(one.find(' ') + 1);
    EXPECT_TRUE(paths.contains(path) && paths.at(path).as_object().contains(method)) << one;
  }
  EXPECT_GE(all.size(), 16U);
}

INSTANTIATE_TEST_SUITE_P(databases, shop_api, ::testing::Values(dialect::sqlite), test::database_name);

}  // namespace
}  // namespace settle
