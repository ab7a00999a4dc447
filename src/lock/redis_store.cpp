// Locks as keys of Redis: one that lives for the ttl and names the owner, and one that keeps the epoch for
// ever. Both have the name as their hash tag, so that a cluster keeps them together.
#include <array>
#include <charconv>

#include "lock/store.hpp"
#include "settle/redis.hpp"

namespace settle::locking {
namespace {

// KEYS: the lock, its epoch. ARGV: owner, ttl in ms. Answers: taken, owner, epoch, ms left. Without an owner
// if the key holds what no lock has written.
//
// The epoch is the clock in microseconds, or one more than the last if the clock is behind: so it grows also
// after Redis has forgotten the counter. It stays below 2^53, up to which Lua counts exactly, until the year
// 2255.
const redis::script& acquire_script() {
  static const redis::script made(R"(
local held = redis.call('GET', KEYS[1])
local owner, epoch = string.match(held or '', '^(%S+) (%d+)$')
if held and not owner then
  return {0, '', '', 0}
end
if owner and owner ~= ARGV[1] then
  return {0, owner, epoch, redis.call('PTTL', KEYS[1])}
end
if owner then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, owner, epoch, tonumber(ARGV[2])}
end
local time = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
epoch = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
redis.call('SET', KEYS[2], epoch)
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. epoch, 'NX', 'PX', ARGV[2])
return {1, ARGV[1], epoch, tonumber(ARGV[2])}
)");
  return made;
}

// ARGV: owner and epoch, ttl in ms.
const redis::script& renew_script() {
  static const redis::script made(R"(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
)");
  return made;
}

// ARGV: owner and epoch. Answers whether it was deleted now, or is gone already: 1, 0, -1 if it is somebody
// else's.
const redis::script& release_script() {
  static const redis::script made(R"(
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
if held ~= ARGV[1] then return -1 end
return redis.call('DEL', KEYS[1])
)");
  return made;
}

std::string ms(duration of) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(of).count());
}

std::string value_of(const fence_token& token) {
  return token.owner.text() + " " + std::to_string(token.epoch);
}

class redis_store final : public store {
 public:
  redis_store(redis::client& in, std::string prefix) : in_(in), prefix_(std::move(prefix)) {}

  const environment& env() const override { return in_.env(); }

  answer acquire(const std::string& name, const uuid& owner, duration ttl) override {
    const std::array keys{key(name), key(name) + ":epoch"};
    const std::array values{owner.text(), ms(ttl)};
    const auto got = resolving([&] {
      return with_fault_points(env(), "lock.acquire",
                               [&] { return in_.run(acquire_script(), keys, values); });
    });
    return read_answer(got);
  }

  std::vector<bool> renew(std::span<const holding> all) override {
    std::vector<bool> ours;
    for (const auto& one : all) {
      const std::array keys{key(one.name)};
      const std::array values{value_of(one.token), ms(one.ttl)};
      const auto done =
          with_fault_points(env(), "lock.renew", [&] { return in_.run(renew_script(), keys, values); });
      ours.push_back(done.integer == 1);
    }
    return ours;
  }

  bool release(const holding& what) override {
    const std::array keys{key(what.name)};
    const std::array values{value_of(what.token)};
    bool repeated = false;
    const auto done = resolving([&] {
      const bool again = std::exchange(repeated, true);
      auto said =
          with_fault_points(env(), "lock.release", [&] { return in_.run(release_script(), keys, values); });
      // After a lost answer, a lock that is gone is one that was released.
      if (again && said.integer == 0) said.integer = 1;
      return said;
    });
    return done.integer == 1;
  }

 private:
  std::string key(const std::string& name) const { return prefix_ + ":lock:{" + name + "}"; }

  answer read_answer(const redis::reply& got) const {
    if (got.items.size() != 4) throw error(errc::statement_failed, "not the answer of a lock's script");
    const auto owner = uuid::parse(got.items[1].text);
    std::int64_t epoch = 0;
    const auto& digits = got.items[2].text;
    std::from_chars(digits.data(), digits.data() + digits.size(), epoch);
    if (!owner || epoch == 0)
      throw error(errc::statement_failed,
                  "the lock's key on " + in_.name() + " was written by somebody else");
    const auto left = std::chrono::milliseconds(std::max<std::int64_t>(got.items[3].integer, 0));
    return {got.items[0].integer == 1, {{*owner, epoch}, env().now() + left}};
  }

  redis::client& in_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<store> make_redis_store(redis::client& in, const lock_service_options& options) {
  return std::make_unique<redis_store>(in, options.key_prefix);
}

}  // namespace settle::locking
