// Fuzz entry for the idempotency keys over HTTP: what settled makes of any body.
//
// The first byte chooses the route, the rest is the body. A call that reaches the store lies within the
// limits; everything else is refused with a problem document, and the store hears nothing of it.
#include <array>
#include <boost/json.hpp>
#include <string>
#include <vector>

#include "daemon/api/keys.hpp"
#include "fuzz/entries.hpp"
#include "once/claim_calls.hpp"
#include "settle/error.hpp"

namespace settle::fuzz {
namespace {

class listening_store final : public claims {
 public:
  std::vector<claim_answer> run(std::span<const claim_call> calls) override {
    std::vector<claim_answer> answers;
    for (const auto& one : calls) {
      keys::check(one);  // throws for what is beyond the limits
      if (std::holds_alternative<claim_request>(one))
        answers.emplace_back(
            claim_result{.outcome = claim_outcome::claimed, .lease = std::chrono::seconds(1)});
      else
        answers.emplace_back(claim_ended::done);
      ++heard;
    }
    return answers;
  }
  const environment& env() const override { return env_; }

  int heard = 0;

 protected:
  claim_answer run_with_others(claim_call call) override { return run({&call, 1}).front(); }

 private:
  environment env_;
};

void check_answer(const http::response& answer) {
  const auto document = boost::json::parse(answer.body);
  if (answer.status == 200) {
    require(document.at("outcome").is_string());
    return;
  }
  require(answer.status >= 400 && answer.status < 500);
  require(answer.headers.find("Content-Type") == "application/problem+json");
  require(document.at("status").as_int64() == answer.status && !document.at("code").as_string().empty());
}

}  // namespace

void keys_api(std::string_view input) {
  constexpr std::array paths{"/v1/keys/claim", "/v1/keys/complete", "/v1/keys/renew", "/v1/keys/release"};
  if (input.empty()) return;
  listening_store store;
  http::router routes;
  daemon::add_key_routes(routes, [&store]() -> claims& { return store; });
  const auto chosen = static_cast<unsigned char>(input.front()) % paths.size();
  http::request asked{.method = "POST", .target = paths.at(chosen), .body = std::string(input.substr(1))};
  asked.headers.add("Content-Type", "application/json");
  const auto answer = routes.handle(asked);
  check_answer(answer);
  require(store.heard == (answer.status == 200 ? 1 : 0));
}

}  // namespace settle::fuzz
