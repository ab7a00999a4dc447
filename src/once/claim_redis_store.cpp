// Claims as hashes of Redis. One script serves all calls of a batch, as one step.
#include <charconv>

#include "base/doubt.hpp"
#include "base/encoding.hpp"
#include "base/sha256.hpp"
#include "once/claim_calls.hpp"
#include "once/claim_rules.hpp"
#include "settle/error.hpp"
#include "settle/redis.hpp"

namespace settle::keys {
namespace {

constexpr int scripts_max = 3;  // of one batch, each but the last with an unknown outcome

// A key per call, and as the last one the highest epoch that any claim has got: a claim that was released or
// has expired leaves nothing else to count from. Of each call ten values: operation, run, fingerprint, lease
// and keep in microseconds, policy, and status, headers, body and hash of an answer. The rules are those of
// judge(); the clock is the server's. An epoch is the clock in microseconds, or one more than the highest
// where that is ahead; it stays below 2^53, up to which Lua counts exactly, until the year 2255. What has no
// answer has no time to live: it may only be forgotten when it is known. Then it is kept for as long as its
// claim or its completion says, whichever is longer.
constexpr const char* claims_lua = R"(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.0f', number) end
local function recorded(key)
  return {'completed', unpack(redis.call('HMGET', key, 'status', 'headers', 'body', 'hash'))}
end

local epochs = KEYS[#KEYS]
local function next_epoch()
  local epoch = text(math.max(now, tonumber(redis.call('GET', epochs) or '0') + 1))
  redis.call('SET', epochs, epoch)
  return epoch
end

local function hold(key, run, epoch, lease, keep_until)
  redis.call('HSET', key, 'run', run, 'epoch', epoch, 'lease_until', text(now + lease),
    'keep_until', text(keep_until))
  return epoch, text(lease)
end

local function claim(key, run, fingerprint, lease, keep_until, policy)
  local known = redis.call('HMGET', key, 'run', 'epoch', 'fingerprint', 'lease_until', 'status', 'keep_until')
  if not known[1] then
    redis.call('HSET', key, 'fingerprint', fingerprint, 'claimed_at', text(now))
    return {'claimed', hold(key, run, next_epoch(), lease, keep_until)}
  end
  if fingerprint ~= '' and known[3] ~= '' and fingerprint ~= known[3] then return {'mismatch'} end
  if known[5] then return recorded(key) end
  local as = policy == 'ask' and 'ask' or 'claimed'
  local left = tonumber(known[4]) - now
  if known[1] == run then
    lease = math.max(left, lease)
    redis.call('HSET', key, 'lease_until', text(now + lease))
    return {as, known[2], text(lease)}
  end
  if left > 0 then return {'in_flight', text(left)} end
  if policy == 'hold' then return {'unknown'} end
  keep_until = math.max(keep_until, tonumber(known[6] or 0))
  return {as, hold(key, run, next_epoch(), lease, keep_until)}
end

local function finish(operation, key, run, lease, keep_until, status, headers, body, hash)
  local known = redis.call('HMGET', key, 'run', 'status', 'keep_until')
  if operation == 'release' and not known[1] then return {'done'} end
  if operation == 'complete' and known[1] == run and known[2] then
    return redis.call('HGET', key, 'hash') == hash and {'done'} or recorded(key)
  end
  if known[1] ~= run or known[2] then return {'lost'} end
  if operation == 'release' then
    redis.call('DEL', key)
  elseif operation == 'renew' then
    redis.call('HSET', key, 'lease_until', text(now + lease))
  else
    local keep = math.max(keep_until, tonumber(known[3] or 0)) - now
    redis.call('HSET', key, 'status', status, 'headers', headers, 'body', body, 'hash', hash)
    redis.call('PEXPIRE', key, text(math.ceil(keep / 1000)))
  end
  return {'done'}
end

local answers = {}
for n = 1, #KEYS - 1 do
  local a = (n - 1) * 10
  local operation, run, lease = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 4])
  local keep_until = now + tonumber(ARGV[a + 5])
  if operation == 'claim' then
    answers[n] = claim(KEYS[n], run, ARGV[a + 3], lease, keep_until, ARGV[a + 6])
  else
    answers[n] = finish(operation, KEYS[n], run, lease, keep_until, unpack(ARGV, a + 7, a + 10))
  end
end
return answers
)";

const redis::script& claims_script() {
  static const redis::script made(claims_lua);
  return made;
}

constexpr std::size_t values_per_call = 10;

std::string_view name_of(when_unknown policy) {
  switch (policy) {
    case when_unknown::hold:
      return "hold";
    case when_unknown::ask:
      return "ask";
    case when_unknown::reissue:
      return "reissue";
  }
  return "hold";
}

std::int64_t number(const std::string& text) {
  std::int64_t read = 0;
  std::from_chars(text.data(), text.data() + text.size(), read);
  return read;
}

class redis_claims final : public batched_claims {
 public:
  redis_claims(redis::client& in, std::string prefix) : in_(in), prefix_(std::move(prefix)) {}

  const environment& env() const override { return in_.env(); }

 private:
  std::vector<claim_answer> run_checked(std::span<const claim_call> calls) override {
    if (calls.empty()) return {};
    std::vector<std::string> keys, values, runs;
    values.reserve(calls.size() * values_per_call);
    for (const auto& call : calls) {
      keys.push_back(key_of(who_of(call)));
      std::visit([&](const auto& one) { append(values, one); }, call);
      runs.push_back(values[values.size() - values_per_call + 1]);
    }
    keys.push_back(prefix_ + ":epoch");
    const auto replies = run_script(keys, values);
    if (replies.items.size() != calls.size())
      throw error(errc::statement_failed, "not the answer of the script of claims");
    std::vector<claim_answer> answers;
    for (std::size_t n = 0; n < calls.size(); ++n)
      answers.push_back(read(calls[n], runs[n], replies.items[n].items));
    return answers;
  }

  // A repeated script finds what the one before has done: every call has its own run.
  redis::reply run_script(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
    return until_known(scripts_max, [&](bool) {
      return with_fault_points(env(), "claims.commit",
                               [&] { return in_.run(claims_script(), keys, values); });
    });
  }

  std::string key_of(const request_identity& who) const {
    return prefix_ + ":" + std::string(who.service) + ":" + to_hex(hash_of(who.caller)) + ":" +
           to_hex(hash_of(who.key));
  }

  static std::string hash_of(std::string_view text) {
    const auto digest = sha256(text);
    return {digest.begin(), digest.end()};
  }

  void append(std::vector<std::string>& to, const claim_request& of) const {
    to.insert(to.end(), {"claim", of.run.value_or(env().ids->next()).text(), fingerprint_of(of.fingerprint),
                         std::to_string(of.lease.count()), std::to_string(of.keep.count()),
                         std::string(name_of(of.on_unknown)), "", "", "", ""});
  }
  void append(std::vector<std::string>& to, const claim_completion& of) const {
    const auto stored = stored_of(of.what);
    to.insert(to.end(), {"complete", of.run.text(), "", "0", std::to_string(of.keep.count()), "",
                         std::to_string(of.what.status), stored.headers, of.what.body, stored.hash});
  }
  void append(std::vector<std::string>& to, const claim_renewal& of) const {
    to.insert(to.end(),
              {"renew", of.run.text(), "", std::to_string(of.lease.count()), "0", "", "", "", "", ""});
  }
  void append(std::vector<std::string>& to, const claim_release& of) const {
    to.insert(to.end(), {"release", of.run.text(), "", "0", "0", "", "", "", "", ""});
  }

  static claim_answer read(const claim_call& call, const std::string& run,
                           const std::vector<redis::reply>& said) {
    const auto text = [&](std::size_t n) -> const std::string& { return said.at(n).text; };
    const auto* claim = std::get_if<claim_request>(&call);
    const auto& outcome = text(0);
    if (claim == nullptr && outcome != "completed")
      return outcome == "done" ? claim_ended::done : claim_ended::lost;
    if (outcome == "claimed" || outcome == "ask")
      return claim_result{outcome == "ask" ? claim_outcome::ask : claim_outcome::claimed,
                          {uuid::parse(run).value(), number(text(1))},
                          duration(number(text(2)))};
    if (outcome == "completed")
      return claim_result{
          claim_outcome::completed, {}, {}, answer_from({number(text(1)), text(2), text(3), text(4)})};
    if (outcome == "in_flight") return refused(claim_outcome::in_flight, duration(number(text(1))));
    return refused(outcome == "mismatch" ? claim_outcome::mismatch : claim_outcome::unknown);
  }

  redis::client& in_;
  std::string prefix_;
};

}  // namespace
}  // namespace settle::keys

namespace settle::inline v0 {

std::unique_ptr<claims> open_claims(redis::client& in, const redis_claims_options& options) {
  return std::make_unique<keys::redis_claims>(in, options.key_prefix);
}

}  // namespace settle::inline v0
