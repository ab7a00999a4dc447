// The test kit for sagas: a world with a database, a clock that moves when told, and no server. It needs no
// test framework: what is wrong is thrown.
//
//   settle::testing::saga_world world;
//   world.add(return_processing).on<pickup_confirmed>(&pickup_confirmed::return_id);
//   const auto id = world.start(return_processing, "r-1", request);
//   world.advance(120h + 1s);
//   assert(world.effects(id) == (std::vector<std::string>{"create_label", "escalate", "undo create_label"}));
//
//   world.fail("refund", settle::testing::step_fault::lost_answer);   // … and what happens then?
//   world.crash_everywhere(return_processing, request);               // at every commit and call
//
// After everything that happens, each body that was touched is run again from its beginning, twice, and told
// the same answers. If it then asks for anything else (it reads a clock, draws a random number, or looks at
// something that has changed), saga_difference is thrown, and names the step.
//
// Threads: none. Remote steps are called in the thread that calls advance(), so do not let them wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "settle/database.hpp"
#include "settle/saga.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::testing {

// A body does not ask for what it asked for before; or a crash has led to another end. The message names the
// step and both.
class saga_difference : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// How a step fails when a test says so.
enum class step_fault {
  refused,      // it says no, and means it: settle::step_refused
  fails,        // it throws: a local step is tried again; of a remote one nobody knows whether it was done
  unavailable,  // what it needs is away: nobody is charged, and a remote step was certainly not done
  lost_answer,  // remote only: it was done, and the answer never came
};

struct saga_world_options {
  // Makes your own tables, once in each world.
  std::function<void(transaction&)> prepare = {};
  // Puts back what stands for the outside, such as a bank that remembers its keys; at the start of each
  // world. Sagas have the same ids, and so their calls the same keys, in all of them.
  std::function<void()> reset = {};
  // What your tables hold, as text: crash_everywhere() compares it.
  std::function<std::string(transaction&)> look = {};
  // An empty database, in a folder that is removed with the world. By default SQLite.
  std::function<std::unique_ptr<database>(const std::string& folder, const environment&)> open = {};
};

// A call of a remote step, or of its undo, that was made.
struct made_call {
  std::string step;
  std::string key;
  bool undo = false;
  friend bool operator==(const made_call&, const made_call&) = default;
};

struct crash_report {
  std::vector<std::string> points = {};  // where it crashed, in turn: "saga.tick.before #2"
  int runs = 0;
  // Of them: those in which nobody knew whether a step was done that says on_unknown(hold), or that was asked
  // about in vain. HELD is the right end then.
  int held = 0;
};

class saga_world {
 public:
  explicit saga_world(const saga_world_options& options = {});
  ~saga_world();
  saga_world(const saga_world&) = delete;
  saga_world& operator=(const saga_world&) = delete;

  template <class In, class Out>
  saga_world& add(const saga_type<In, Out>& what) {
    add_definition(what.definition());
    return *this;
  }
  template <class Event, class KeyOf>
  saga_world& on(KeyOf key_of) {
    add_setup([key_of = std::move(key_of)](saga_host& host) {
      host.on<Event>([key_of](const Event& e) { return std::string(std::invoke(key_of, e)); });
    });
    return *this;
  }
  // What a step does in this world instead: one of the same name, arguments and result.
  template <class Via, class R, class... Args>
  saga_world& replace(const step<Via, R, Args...>& with) {
    replace_step(with.core());
    return *this;
  }

  // Each of these runs what is due until nothing is.
  template <class In, class Out>
  saga_id start(const saga_type<In, Out>& what, std::string_view entity, const In& input,
                const saga_start_options& options = {}) {
    return start_by([&](saga_host& host) { return host.start(what, entity, input, options); });
  }
  template <class Event>
  void deliver(const Event& what) {
    deliver_by([&](saga_host& host, transaction& tx, const std::string& id) { host.deliver(tx, id, what); });
  }
  // With everything that becomes due meanwhile, each at its time.
  void advance(duration by);
  void order(saga_id of, saga_order what, const std::string& result = {});

  // The process dies and another one goes on.
  void restart();
  // Another program goes on, in which this type has another body or other steps. Sagas that are under way are
  // replayed with it: a difference is thrown. A version that is new is added, not deployed.
  template <class In, class Out>
  void deploy(const saga_type<In, Out>& what) {
    deploy_definition(what.definition());
  }

  // From now on, so many times; 0: always. A remote step that is to fail is not called, but for lost_answer.
  void fail(std::string_view step, step_fault how, int times = 0);
  void fail_undo(std::string_view step, step_fault how, int times = 0);
  void mend(std::string_view step);  // and its undo

  // What it has done and undone, in order: "reserve", "charge", "undo reserve".
  std::vector<std::string> effects(saga_id of);
  // What it waits for: "pickup.confirmed of r-1", "sleep".
  std::vector<std::string> waits(saga_id of);
  std::string status(saga_id of);      // "RUNNING", "HELD", …
  std::string last_error(saga_id of);  // why it was undone or is held
  // Of a step, or of the whole saga if none is named.
  template <class T>
  T result(saga_id of, std::string_view step = {}) {
    return detail::read_stored<T>(result_text(of, step));
  }
  // All of the above, for messages.
  std::string story(saga_id of);
  // Calls of remote steps that were made, those among them whose answer was lost.
  const std::vector<made_call>& calls() const;

  database& db();
  timestamp now() const;

  // Starts one in a new world of the same types, events, replaced and failing steps, plays the script, lets
  // an hour pass, and notes how it ends. Then the same once for every commit and every call on the way,
  // crashing there and going on in a new process. Every such end must be the same: the status, what is done
  // and not undone, the keys of the calls, what `look` says. Throws saga_difference, or std::logic_error if
  // there was nothing to crash at.
  template <class In, class Out>
  crash_report crash_everywhere(
      const saga_type<In, Out>& what, const In& input,
      const std::function<void(saga_world& world, saga_id id)>& script = [](saga_world&, saga_id) {}) {
    return crash_at_all([&](saga_world& world) { script(world, world.start(what, "crash test", input)); });
  }

 private:
  struct [[gnu::visibility("hidden")]] parts;
  explicit saga_world(const parts& like);

  void add_definition(std::shared_ptr<const detail::saga_definition> what);
  void deploy_definition(std::shared_ptr<const detail::saga_definition> what);
  void add_setup(std::function<void(saga_host&)> how);
  void replace_step(detail::step_pointer with);
  saga_id start_by(const std::function<saga_id(saga_host&)>& how);
  void deliver_by(const std::function<void(saga_host&, transaction&, const std::string& id)>& how);
  std::string result_text(saga_id of, std::string_view step);
  crash_report crash_at_all(const std::function<void(saga_world&)>& play) const;

  std::unique_ptr<parts> parts_;
};

}  // namespace settle::inline v0::testing

#pragma GCC visibility pop
