#include "daemon/api/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <optional>

#include "base/encoding.hpp"
#include "base/error_detail.hpp"
#include "base/text.hpp"
#include "daemon/api/fields.hpp"
#include "http/characters.hpp"
#include "once/claim_calls.hpp"
#include "settle/adapter/boost_json_http.hpp"
#include "settle/error.hpp"

namespace settle::daemon {
namespace {

namespace json = boost::json;

constexpr std::size_t batch_max = 32;
constexpr std::size_t shared_body_bytes_max = 4096;  // documents up to this size share their memory
// An answer in base64, and what is around it.
constexpr std::size_t body_bytes_max = claims::answer_bytes_max / 3 * 4 + std::size_t{64} * 1024;

request_identity identity_of(fields& from) {
  return {from.text("service"), from.text("caller"), from.text("key")};
}

uuid token_of(std::string_view text) {
  const auto read = uuid::parse(text);
  if (!read) throw bad_field("token", "is the token of a claim, a UUID");
  return *read;
}

duration milliseconds_of(fields& from, std::string_view name, duration otherwise) {
  const auto given = from.integer_or(name, otherwise / std::chrono::milliseconds(1));
  // Bounds are checked with the call; here only what would overflow.
  if (given < 0 || given > std::chrono::milliseconds(std::chrono::days(1000)).count())
    throw bad_field(name, "is a number of milliseconds");
  return std::chrono::milliseconds(given);
}

when_unknown policy_of(std::string_view text) {
  if (text == "hold") return when_unknown::hold;
  if (text == "ask") return when_unknown::ask;
  if (text == "reissue") return when_unknown::reissue;
  throw bad_field("on_unknown", "is hold, ask or reissue");
}

claim_about about_of(fields& whole) {
  if (!whole.has("about")) return {};
  fields from(whole.object("about"), "about.");
  const claim_about made{.caller = from.text_or("caller", ""),
                         .key = from.text_or("key", ""),
                         .method = from.text_or("method", ""),
                         .target = from.text_or("target", ""),
                         .label = from.text_or("label", "")};
  from.expect_no_others();
  return made;
}

claim_call read_claim(fields& from) {
  claim_request made{.who = identity_of(from), .fingerprint = from.text_or("fingerprint", "")};
  made.lease = milliseconds_of(from, "lease_ms", made.lease);
  made.keep = milliseconds_of(from, "keep_ms", made.keep);
  made.on_unknown = policy_of(from.text_or("on_unknown", "hold"));
  if (const auto token = from.text_or("token", ""); !token.empty()) made.run = token_of(token);
  made.about = about_of(from);
  return made;
}

std::string body_of(fields& from) {
  const auto encoded = from.text_or("body_base64", "");
  if (encoded.empty()) return std::string(from.text_or("body", ""));
  if (from.has("body")) throw bad_field("body_base64", "and body exclude each other");
  auto decoded = from_base64(encoded);
  if (!decoded) throw bad_field("body_base64", "is not base64");
  return std::move(*decoded);
}

answer read_answer(const json::object& given) {
  fields from(given, "answer.");
  const auto status = from.integer_or("status", 200);
  if (status < 100 || status > 599) throw bad_field("answer.status", "is a status of HTTP");
  answer made{.status = static_cast<int>(status), .body = body_of(from)};
  for (const auto& one : from.array_or_none("headers")) {
    const auto* pair = one.if_array();
    if (pair == nullptr || pair->size() != 2 || !pair->at(0).is_string() || !pair->at(1).is_string())
      throw bad_field("answer.headers", "is a list of [name, value]");
    made.headers.emplace_back(std::string(pair->at(0).as_string()), std::string(pair->at(1).as_string()));
  }
  from.expect_no_others();
  return made;
}

claim_call read_completion(fields& from) {
  return claim_completion{identity_of(from), token_of(from.text("token")), read_answer(from.object("answer")),
                          milliseconds_of(from, "keep_ms", std::chrono::hours(24))};
}

claim_call read_renewal(fields& from) {
  return claim_renewal{identity_of(from), token_of(from.text("token")),
                       milliseconds_of(from, "lease_ms", std::chrono::seconds(30))};
}

claim_call read_release(fields& from) {
  return claim_release{identity_of(from), token_of(from.text("token"))};
}

struct operation {
  std::string_view path;
  claim_call (*read)(fields&);
  std::string_view done;  // what it is called when it is done
};
constexpr std::array operations = {operation{"/v1/keys/claim", read_claim, "claimed"},
                                   operation{"/v1/keys/complete", read_completion, "completed"},
                                   operation{"/v1/keys/renew", read_renewal, "renewed"},
                                   operation{"/v1/keys/release", read_release, "released"}};

// What stands before it is the service's. The router decodes a path before it looks for the route:
// /v1/keys/cl%61im is one of these, too.
const operation* operation_of(const http::request& asked) {
  const auto path = http::percent_decoded(asked.path).value_or("");
  const auto* found =
      std::ranges::find_if(operations, [&](const operation& one) { return path.ends_with(one.path); });
  return found == operations.end() ? nullptr : found;
}

json::object shown(const answer& of) {
  json::array headers;
  for (const auto& [name, content] : of.headers) headers.push_back(json::array{name, content});
  json::object made{{"status", of.status}, {"headers", std::move(headers)}};
  if (is_utf8(of.body))
    made["body"] = of.body;
  else
    made["body_base64"] = to_base64(of.body);
  return made;
}

// What most calls are answered with; none of its parts has to be escaped.
http::response holding(const claim_result& of) {
  return http::text(
      200, "application/json",
      fmt::format(R"({{"outcome":"{}","token":"{}","epoch":{},"lease_ms":{}}})", to_string(of.outcome),
                  of.token.run.text(), of.token.epoch, of.lease / std::chrono::milliseconds(1)));
}

http::response come_again(http::response with) {
  with.headers.set("Retry-After", "1");
  return with;
}

http::response told(const http::request& asked, const claim_result& of) {
  switch (of.outcome) {
    case claim_outcome::claimed:
    case claim_outcome::ask:
      return holding(of);
    case claim_outcome::completed:
      return http::json(200, json::object{{"outcome", "completed"}, {"answer", shown(of.what)}});
    case claim_outcome::in_flight:
      return come_again(http::problem(409, "idempotency_in_flight",
                                      "the first request with this key is still at work; come again with it",
                                      asked.path));
    case claim_outcome::mismatch:
      return http::problem(422, "idempotency_key_reused",
                           "this key was used for another request; a new action needs a new key", asked.path);
    case claim_outcome::unknown:
      break;
  }
  return http::problem(
      409, "idempotency_outcome_unknown",
      "whoever claimed this key was not heard of again, and nobody knows whether the work was done; "
      "`settle keys unknown` lists such claims, and `settle keys resolve` decides them",
      asked.path);
}

http::response told(const http::request& asked, const operation& what, claim_ended of) {
  if (of == claim_ended::done)
    return http::text(200, "application/json", fmt::format(R"({{"outcome":"{}"}})", what.done));
  return http::problem(
      409, "claim_lost",
      "this token holds the key no longer: its claim was taken over, or is over; nothing was changed",
      asked.path);
}

// Whoever completes a claim a second time, with another answer, must know that others have been given the
// first.
http::response recorded_otherwise(const http::request& asked, const answer& recorded) {
  auto made = http::problem(
      409, "claim_completed_otherwise",
      "this claim has been completed with another answer, which stays; it is in `answer`", asked.path);
  auto body = json::parse(made.body).as_object();
  body["answer"] = shown(recorded);
  made.body = json::serialize(body) + "\n";
  return made;
}

http::response told(const http::request& asked, const operation& what, const claim_answer& of) {
  const auto* result = std::get_if<claim_result>(&of);
  if (result != nullptr && what.read == read_completion) return recorded_otherwise(asked, result->what);
  if (result != nullptr) return told(asked, *result);
  return told(asked, what, std::get<claim_ended>(of));
}

// What the sender can mend.
http::response refusal_of(const http::request& asked, const error& why) {
  const int status = why.code() == errc::payload_too_large ? 413 : 400;
  return http::problem(status, to_string(why.code()), detail_of(why), asked.path);
}

// Requests of one batch: those that make sense become calls, the others are answered.
class asked_together {
 public:
  explicit asked_together(std::span<const http::request* const> asked)
      : asked_(asked), answers_(asked.size()) {
    documents_.reserve(asked.size());
    for (std::size_t n = 0; n < asked.size(); ++n) read(n);
  }

  std::vector<http::response> run(claims& store) {
    for (auto& one : calls_) keys::name_run(one, store.env());
    try {
      run(store, calls_, origins_);
    } catch (const error& e) {
      if (e.retryable()) throw;
      if (e.code() == errc::invalid_argument)
        refuse_all(store, e);
      else
        run_one_by_one(store);
    }
    std::vector<http::response> all;
    for (auto& one : answers_) all.push_back(std::move(*one));
    return all;
  }

 private:
  struct origin {
    std::size_t number;  // of the request
    const operation* what;
  };

  // The call points to what the document holds, which stays where it is when the document is moved. A large
  // one of a request that is refused goes at once.
  void read(std::size_t n) try {
    const auto* what = operation_of(*asked_[n]);
    if (what == nullptr) {
      answers_[n] = http::problem(404, "not_found", "there is nothing at this path", asked_[n]->path);
      return;
    }
    const bool small = asked_[n]->body.size() <= shared_body_bytes_max;
    auto parsed = http::parse_json(*asked_[n], {.bytes_max = body_bytes_max},
                                   small ? json::storage_ptr(&small_documents_) : json::storage_ptr());
    if (!parsed) {
      answers_[n] = parsed.refused();
      return;
    }
    auto document = *std::move(parsed);
    const auto* object = document.if_object();
    if (object == nullptr) throw bad_field("the body", "is a JSON object");
    fields from(*object);
    auto call = what->read(from);
    from.expect_no_others();
    keys::check(call);
    documents_.push_back(std::move(document));
    calls_.push_back(std::move(call));
    origins_.push_back({n, what});
  } catch (const bad_field& e) {
    answers_[n] = http::problem(400, "request_invalid", e.what(), asked_[n]->path);
  } catch (const error& e) {
    answers_[n] = refusal_of(*asked_[n], e);
  }

  void run(claims& store, std::span<const claim_call> calls, std::span<const origin> origins) {
    const auto found = store.run(calls);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto [number, what] = origins[i];
      if (const auto* failed = std::get_if<claim_failed>(&found[i]))
        fail(store, number, failed->why);
      else
        answers_[number] = told(*asked_[number], *what, found[i]);
    }
  }

  // The calls are in order, so what does not fit is how the store is set up: it may forget, say.
  void refuse_all(claims& store, const error& why) {
    store.env().log->write(log_level::error, "keys_refused", {{"error", why.what()}});
    const auto detail = fmt::format("keys are not served until this is mended: {}", detail_of(why));
    for (const auto& [n, what] : origins_)
      answers_[n] = come_again(http::problem(503, "keys_store_unfit", detail, asked_[n]->path));
  }

  // One that cannot be served, because its record is damaged, must not stand in the way of others.
  void run_one_by_one(claims& store) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      try {
        run(store, {&calls_[i], 1}, {&origins_[i], 1});
      } catch (const error& e) {
        fail(store, origins_[i].number, e);
      }
    }
  }

  void fail(claims& store, std::size_t number, const error& why) {
    store.env().log->write(log_level::error, "key_failed", {{"error", why.what()}});
    const auto& path = asked_[number]->path;
    answers_[number] =
        why.retryable()
            ? come_again(http::problem(503, to_string(why.code()),
                                       "the service cannot do this now; try again with the same key", path))
            : http::problem(500, to_string(why.code()), "this key cannot be served; the log says why", path);
  }

  std::span<const http::request* const> asked_;
  json::monotonic_resource small_documents_{std::size_t{16} * 1024};
  std::vector<json::value> documents_;
  std::vector<claim_call> calls_;
  std::vector<origin> origins_;  // of the calls
  std::vector<std::optional<http::response>> answers_;
};

}  // namespace

void add_key_routes(http::router& to, std::function<claims&()> store, const route_place& at) {
  const auto below = [&](std::size_t n) { return at.prefix + std::string(operations[n].path); };
  const std::array paths{below(0), below(1), below(2), below(3)};
  to.post_batched(
      {paths[0], paths[1], paths[2], paths[3]},
      [store = std::move(store)](std::span<const http::request* const> asked) {
        return asked_together(asked).run(store());
      },
      {.batch_max = batch_max, .at_once_max = 2, .body_bytes_max = body_bytes_max, .workers = at.workers});
}

}  // namespace settle::daemon
