// Sagas: flows over several services that complete or are undone, across crashes, for days.
//
//   const auto place_order = settle::saga_of<order>("place_order", 1,
//       settle::local("reserve_inventory", reserve).undo(release),
//       settle::remote("charge_payment", charge).undo(refund),
//       settle::local("create_shipment", ship));
//
//   settle::saga_host host(*db, {.name = "orders"});
//   host.add(place_order);
//   host.start(tx, place_order, o.id, o);   // starts with the commit of the caller's transaction
//   settle::background loop(host);
//
// Steps are in settle/saga_step.hpp, bodies that wait, branch and decide in settle/saga_flow.hpp.
//
// A local step happens once: its effect commits with the note that it is done. A remote step may be asked for
// twice, with the same key. When a step is refused, every step that may have run is undone, the last one
// first; an undo that fails is tried again, and after that the saga is HELD until a person decides. Any
// number of processes with the same host name share the sagas; one that dies or is stopped is replaced, and
// finds that it cannot write when it wakes up.
//
// The view saga_instances shows all of them: type, entity, current step, status, results by step, times.
//
// Threads: start() and counts() from any; everything else from the thread that runs the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/saga_flow.hpp"
#include "settle/saga_step.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct saga_host_options {
  // Hosts of one name share the sagas that were started under it.
  std::string name;
  // Sagas per transaction, and steps of one saga in it. More is faster; others wait for the rows meanwhile.
  std::size_t batch_max = 64;
  std::size_t steps_max = 16;
  // Target for the time that handlers take in one transaction.
  duration batch_time = std::chrono::milliseconds(20);
  // Remote steps at a time, each on a thread. 0: one after the other on the host's own thread, for tests.
  int call_threads = 8;
  // A process that has stopped is replaced after this time; one that has ended, at once.
  duration lease_ttl = std::chrono::seconds(10);
  // How long to wait for the transaction of a shard's former owner, as consumer_options::takeover_wait.
  duration takeover_wait = std::chrono::seconds(10);
  // How long finished sagas are kept.
  duration keep = std::chrono::hours(24 * 30);
  // How long events are kept that nobody has waited for.
  duration mailbox_keep = std::chrono::hours(24 * 30);
  // How often to look without a wake-up.
  duration idle_poll = std::chrono::milliseconds(500);
};

struct saga_start_options {
  // Of the saga; by default it follows from host, type and entity, so that one entity has one saga of a type.
  std::optional<saga_id> id = std::nullopt;
  // If it has not ended by then, it is undone.
  std::optional<timestamp> deadline = std::nullopt;
};

// One of many that are started together.
template <class In>
struct new_saga {
  std::string entity;
  In input;
  saga_start_options options = {};
};

// A saga of this id is there already, and was started with another type or input. It goes on as it was.
class saga_mismatch : public error {
 public:
  explicit saga_mismatch(const std::string& why) : error(errc::invalid_argument, why) {}
};

// What a host has done since it was made.
struct saga_counts {
  std::int64_t steps = 0;  // done
  std::int64_t undos = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t compensated = 0;
  std::int64_t held = 0;
  std::int64_t ticks = 0;  // transactions
  std::int64_t replays = 0;
};

class saga_host final : public service {
 public:
  saga_host(database& db, const saga_host_options& options);
  // One whose sagas wait for events of this broker: it is a consumer of the group "<name>.sagas".
  saga_host(database& db, broker& from, const saga_host_options& options);
  ~saga_host() override;

  // Before it runs. Of several versions of a type new sagas get the highest; old ones keep theirs, so add
  // both. Throws invalid_argument for a remote step that has neither an undo nor on_unknown().
  template <class In, class Out>
  saga_host& add(const saga_type<In, Out>& what) {
    return add(what.definition());
  }

  // In the caller's transaction: it starts if that commits. Whoever starts the same one again, with the same
  // input, gets the same id and starts nothing; with another input, saga_mismatch.
  template <class In, class Out>
  saga_id start(transaction& tx, const saga_type<In, Out>& what, std::string_view entity, const In& input,
                const saga_start_options& options = {}) {
    return start(tx, *what.definition(), entity, detail::store(input), options);
  }
  // Many at once, which on PostgreSQL costs one round trip. Gives their ids in the same order.
  template <class In, class Out>
  std::vector<saga_id> start_all(transaction& tx, const saga_type<In, Out>& what,
                                 std::span<const new_saga<std::type_identity_t<In>>> all) {
    std::vector<new_saga<std::string>> stored;
    stored.reserve(all.size());
    for (const auto& one : all) stored.push_back({one.entity, detail::store(one.input), one.options});
    return start_all(tx, *what.definition(), stored);
  }
  // One, in a transaction of its own.
  template <class In, class Out>
  saga_id start(const saga_type<In, Out>& what, std::string_view entity, const In& input,
                const saga_start_options& options = {}) {
    return start(*what.definition(), entity, detail::store(input), options);
  }

  // Before it runs: events of this type are kept for sagas that wait for them, or will, by the key that this
  // returns. An event is given to one wait, the oldest; what nobody waits for is kept for mailbox_keep. Two
  // types of saga that both want every event are two hosts.
  template <class Event, class KeyOf>
  saga_host& on(KeyOf key_of) {
    detail::require_codec<Event>();
    static_assert(std::is_invocable_r_v<std::string, const KeyOf&, const Event&>,
                  "settle: the function of saga_host::on<Event> takes (const Event&) and returns the key");
    return on(codec<Event>::topic, codec<Event>::type,
              [key_of = std::move(key_of)](std::string_view payload) -> std::string {
                try {
                  return key_of(codec<Event>::decode(payload));
                } catch (const std::exception& e) {
                  throw error(errc::decode_failed, std::string(codec<Event>::type) + ": " + e.what());
                }
              });
  }

  // An event that comes another way than over the broker, in the caller's transaction. False: one of this id
  // was there before.
  template <class Event>
  bool deliver(transaction& tx, std::string_view event_id, const Event& what) {
    return deliver(tx, codec<Event>::type, event_id, codec<Event>::encode(what));
  }

  saga_counts counts() const;

  // One transaction with as many sagas as are due.
  bool run_once(std::stop_token cancel = {}) override;
  std::string_view name() const override;
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;
  void leave() noexcept override;

 private:
  saga_host& on(std::string_view topic, std::string_view type,
                std::function<std::string(std::string_view payload)> key_of);
  bool deliver(transaction& tx, std::string_view type, std::string_view event_id, std::string payload);
  saga_host& add(std::shared_ptr<const detail::saga_definition> what);
  saga_id start(transaction& tx, const detail::saga_definition& what, std::string_view entity,
                std::string input, const saga_start_options& options);
  saga_id start(const detail::saga_definition& what, std::string_view entity, std::string input,
                const saga_start_options& options);
  std::vector<saga_id> start_all(transaction& tx, const detail::saga_definition& what,
                                 std::span<const new_saga<std::string>> all);

  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<engine> engine_;
};

// What an operator may ask of a saga. Its owner does it, notes who asked and why, and says in the log if it
// cannot be done.
enum class saga_order {
  retry,      // HELD: go on where it stopped, with all attempts
  skip,       // HELD in an undo: that step needs none
  mark_done,  // HELD at a remote step: it was done, with this result
  abort,      // RUNNING or HELD: undo it
};
std::string_view to_string(saga_order of);

struct saga_order_options {
  std::string who;
  std::string reason;
  std::string result = {};  // of mark_done, in its stored form
};

// False: there is no such saga, or it has ended.
bool order_saga(database& db, saga_id of, saga_order what, const saga_order_options& options);

}  // namespace settle::inline v0

#pragma GCC visibility pop
