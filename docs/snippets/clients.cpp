// What docs/guides/clients.md quotes: a request under one key, and the key as a server reads it.
//
// Usage: clients <folder>      as the other programs here; it needs no files
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <string_view>

#include "settle/request_key.hpp"
#include "settle/retry_request.hpp"

namespace {

// A shop that acts once per key, and whose first answer is lost.
class shop {
 public:
  settle::request_answer post(std::string_view key_header, const std::string& order) {
    // [snippet: read_key]
    const auto read = settle::parse_request_key(key_header);
    if (!read.key) return {.status = 400, .body = "the key is " + std::string(to_string(read.refused))};
    // [end]
    const auto [place, first] = orders_.try_emplace(read.key->text(), order);
    if (++requests_ == 1) return {};  // done, but nobody hears of it
    return {.status = 201,
            .headers = {{"Idempotent-Replayed", first ? "false" : "true"}},
            .body = "ordered: " + place->second};
  }
  std::size_t orders() const { return orders_.size(); }

 private:
  std::map<std::string, std::string> orders_;
  int requests_ = 0;
};

int clients() {
  shop http;
  const std::string order = "one book";
  // [snippet: retry_request]
  const auto key = settle::request_key::make();  // once per action; stored, if that must survive a restart
  const auto result = settle::retry_request(
      key, [&](const settle::request_key& k, const settle::request_attempt&) -> settle::request_answer {
        return http.post(k.header(), order);  // status 0 if the connection failed
      });
  const bool known = result.end == settle::request_end::answered && !result.unsure;
  std::printf("%s\n", known ? result.answer.body.c_str() : "not known yet: call again with the same key");
  // [end]
  const bool refused = http.post("two, keys", order).status == 400;
  return known && result.replayed && result.attempts == 2 && http.orders() == 1 && refused ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return clients();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "clients: %s\n", e.what());
    return 1;
  }
}
