// The body of a saga: a coroutine that asks for one thing after the other.
//
//   settle::flow<> process_return(settle::saga& saga, const return_request& r) {
//     co_await saga.run(create_label, r);
//     const auto pickup = co_await saga.wait_for<pickup_confirmed>(r.id, 120h);
//     if (!pickup) {
//       co_await saga.run(escalate, r);
//       co_await saga.undo("not picked up within 5 days");  // never returns
//     }
//     co_await saga.run(refund, r);
//   }
//
// What a body has asked for and been told is kept in a journal. Whenever it is not in memory (it waits, the
// process was restarted, another one took over) it is run again from its beginning and told the same answers,
// without doing anything twice. So it must ask for the same things in the same order: no clock but
// saga.now(), no randomness but saga.new_id(), no reads of anything but its input and the answers. Objects
// that live in a body are destroyed when it leaves memory, not only when it ends.
//
// GCC 12 destroys some temporaries twice in an expression with co_await. The functions below refuse them
// where they can see them: give a name to what is not a number or a view. Write `if (const auto x = co_await
// …)`, not `if (co_await …)`.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "settle/saga_command.hpp"
#include "settle/saga_step.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

template <class T = void>
class flow;
template <class In, class Out>
class saga_type;

namespace detail {

class body_host;
std::string child_input(std::string_view entity, std::string_view input);

// A place in a saga's body: the body itself, or a branch. Everything asked for in it has a number.
struct flow_scope {
  body_host* host = nullptr;
  std::string path = {};
  std::size_t asked = 0;
  int forks = 0;
  int ids = 0;
  timestamp told_at = {};  // when the last answer was noted
};

struct saga_definition;

enum class question_kind { step, sleep, wait, version, undo, child };
enum class answer_kind { none, done, refused, timed_out };

struct question {
  question_kind kind = question_kind::step;
  step_pointer step = nullptr;
  std::shared_ptr<const saga_definition> child = nullptr;
  std::string name = {};   // of the step, the event's type, the version, the child; the reason of an undo
  std::string input = {};  // of the step; the event's key; of the child, with its entity
  std::optional<duration> within = {};
  std::int64_t current = 0;  // of a version
  bool may_fail = false;
  int row = 0;  // of the journal; 0: none yet

  answer_kind answer = answer_kind::none;
  bool outcome_unknown = false;
  std::string result = {};
};

// Branches that somebody waits for.
struct fork {
  std::size_t running = 0;
  std::coroutine_handle<> parent = {};
};

// What bodies ask; the engine.
class body_host {
 public:
  virtual bool ask(flow_scope& in, question& what) = 0;  // true: it is answered
  virtual void wait(flow_scope& in, question& what, std::coroutine_handle<> who) = 0;
  virtual void begin(std::coroutine_handle<> branch) = 0;
  virtual void resume(std::coroutine_handle<> parent) = 0;
  virtual flow_scope& scope(std::string path) = 0;
  virtual saga_id id() const = 0;
  virtual const std::string& entity() const = 0;

 protected:
  ~body_host() = default;
};

uuid derived_saga_uuid(saga_id of, std::string_view scope, int number);

struct flow_promise_base {
  std::coroutine_handle<> continuation = {};
  body_host* host = nullptr;
  fork* part_of = nullptr;
  std::exception_ptr thrown = {};

  struct at_end {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      flow_promise_base& promise = ended.promise();
      if (promise.continuation) return promise.continuation;
      // The parent is resumed by the engine: it destroys this branch, which must not be running then.
      if (promise.part_of != nullptr && --promise.part_of->running == 0)
        promise.host->resume(promise.part_of->parent);
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  at_end final_suspend() const noexcept { return {}; }
  void unhandled_exception() { thrown = std::current_exception(); }

  template <class Awaited>
  Awaited&& await_transform(Awaited&& what) const {
    static_assert(
        requires { typename std::remove_cvref_t<Awaited>::of_a_saga; },
        "settle: a saga's body awaits only what its settle::saga gives it, and other flows");
    return std::forward<Awaited>(what);
  }
};

// Temporaries that GCC 12 may destroy twice.
template <class Given>
concept safe_to_await =
    std::is_lvalue_reference_v<Given> || std::is_trivially_destructible_v<std::remove_cvref_t<Given>>;

}  // namespace detail

// A coroutine that runs as part of a saga. It begins when it is awaited.
template <class T>
class [[nodiscard]] flow {
 public:
  struct promise_type : detail::flow_promise_base {
    std::optional<T> returned = {};
    flow get_return_object() { return flow(std::coroutine_handle<promise_type>::from_promise(*this)); }
    template <class U>
    void return_value(U&& what) {
      returned.emplace(std::forward<U>(what));
    }
    T take() {
      if (thrown) std::rethrow_exception(thrown);
      return std::move(*returned);
    }
  };
  using of_a_saga = void;

  flow(flow&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  flow& operator=(flow&&) = delete;
  ~flow() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> who) noexcept {
    frame_.promise().continuation = who;
    return frame_;
  }
  T await_resume() { return frame_.promise().take(); }

  std::coroutine_handle<promise_type> frame() const { return frame_; }

 private:
  explicit flow(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

template <>
class [[nodiscard]] flow<void> {
 public:
  struct promise_type : detail::flow_promise_base {
    flow get_return_object() { return flow(std::coroutine_handle<promise_type>::from_promise(*this)); }
    void return_void() const noexcept {}
    void take() const {
      if (thrown) std::rethrow_exception(thrown);
    }
  };
  using of_a_saga = void;

  flow(flow&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  flow& operator=(flow&&) = delete;
  ~flow() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> who) noexcept {
    frame_.promise().continuation = who;
    return frame_;
  }
  void await_resume() const { frame_.promise().take(); }

  std::coroutine_handle<promise_type> frame() const { return frame_; }

 private:
  explicit flow(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

// How a step ended that the body has only attempted.
template <class T>
class outcome {
 public:
  explicit outcome(T value) : value_(std::move(value)) {}
  outcome(std::string why, bool unknown) : why_(std::move(why)), unknown_(unknown) {}

  bool done() const { return value_.has_value(); }
  explicit operator bool() const { return done(); }
  const T& value() const { return value_.value(); }
  const std::string& why() const { return why_; }
  // It may have been done all the same.
  bool unknown() const { return unknown_; }

 private:
  std::optional<T> value_;
  std::string why_;
  bool unknown_ = false;
};

template <>
class outcome<void> {
 public:
  outcome() : done_(true) {}
  outcome(std::string why, bool unknown) : why_(std::move(why)), unknown_(unknown) {}

  bool done() const { return done_; }
  explicit operator bool() const { return done_; }
  const std::string& why() const { return why_; }
  bool unknown() const { return unknown_; }

 private:
  bool done_ = false;
  std::string why_;
  bool unknown_ = false;
};

namespace detail {

// An answer to wait for. `Read` makes of the answered question what the body gets.
template <class Read>
class [[nodiscard]] awaited_answer {
 public:
  using of_a_saga = void;
  awaited_answer(flow_scope& in, question what) : scope_(in), what_(std::move(what)) {}

  bool await_ready() { return scope_.host->ask(scope_, what_); }
  void await_suspend(std::coroutine_handle<> who) { scope_.host->wait(scope_, what_, who); }
  auto await_resume() { return Read::from(what_); }

 private:
  flow_scope& scope_;
  question what_;
};

template <class R>
struct read_result {
  static R from(const question& of) {
    if constexpr (!std::is_void_v<R>) return read_stored<std::remove_cvref_t<R>>(of.result);
  }
};
template <class R>
struct read_outcome {
  static outcome<R> from(const question& of) {
    if (of.answer == answer_kind::refused) return outcome<R>(of.result, of.outcome_unknown);
    if constexpr (std::is_void_v<R>)
      return outcome<void>();
    else
      return outcome<R>(read_stored<R>(of.result));
  }
};
template <class Event>
struct read_event {
  static std::optional<Event> from(const question& of) {
    if (of.answer == answer_kind::timed_out) return std::nullopt;
    return codec<Event>::decode(of.result);
  }
};
struct read_nothing {
  static void from(const question&) {}
};
struct read_version {
  static std::int64_t from(const question& of) { return read_stored<std::int64_t>(of.result); }
};

template <class... Flows>
class [[nodiscard]] awaited_branches {
 public:
  using of_a_saga = void;
  awaited_branches(flow_scope& in, Flows&... branches) : scope_(in), branches_(branches...) {}

  bool await_ready() const noexcept { return sizeof...(Flows) == 0; }
  void await_suspend(std::coroutine_handle<> who) {
    fork_ = {sizeof...(Flows), who};
    ++scope_.forks;
    std::apply([&](Flows&... branch) { (begin(branch), ...); }, branches_);
  }
  void await_resume() {
    std::apply([](Flows&... branch) { ((void)branch.frame().promise().take(), ...); }, branches_);
  }

 private:
  template <class Flow>
  void begin(Flow& branch) {
    auto& promise = branch.frame().promise();
    promise.host = scope_.host;
    promise.part_of = &fork_;
    scope_.host->begin(branch.frame());
  }
  flow_scope& scope_;
  std::tuple<Flows&...> branches_;
  fork fork_;
};

}  // namespace detail

// What a body asks through. A copy is the same place in the same saga.
class saga {
 public:
  explicit saga(detail::flow_scope& in) : scope_(&in) {}

  // Does a step and returns its result. If the step is refused, it does not return: the saga is undone.
  template <class Via, class R, class... Args, class... Given>
  auto run(const step<Via, R, Args...>& what, Given&&... given) {
    return ask_step<detail::read_result<R>>(what, false, std::forward<Given>(given)...);
  }

  template <class Command, class Reply, class... Args, class... Given>
  auto run(const command_step<Command, Reply, Args...>& what, Given&&... given) {
    return ask_step<detail::read_result<Reply>>(what, false, std::forward<Given>(given)...);
  }

  // Does a step and tells how it ended, for bodies that know another way.
  template <class Via, class R, class... Args, class... Given>
  auto attempt(const step<Via, R, Args...>& what, Given&&... given) {
    return ask_step<detail::read_outcome<R>>(what, true, std::forward<Given>(given)...);
  }

  template <class Command, class Reply, class... Args, class... Given>
  auto attempt(const command_step<Command, Reply, Args...>& what, Given&&... given) {
    return ask_step<detail::read_outcome<Reply>>(what, true, std::forward<Given>(given)...);
  }

  auto sleep(duration for_so_long) {
    return detail::awaited_answer<detail::read_nothing>(
        *scope_, {.kind = detail::question_kind::sleep, .within = for_so_long});
  }

  // The next event of this type and key that nobody has got yet, also if it came before. Nothing: it has not
  // come within that time. The host must listen to it: saga_host::on<Event>().
  template <class Event>
  auto wait_for(std::string_view key, std::optional<duration> at_most = std::nullopt) {
    return detail::awaited_answer<detail::read_event<Event>>(*scope_,
                                                             {.kind = detail::question_kind::wait,
                                                              .name = std::string(codec<Event>::type),
                                                              .input = std::string(key),
                                                              .within = at_most});
  }

  // A saga of its own, of this or another type of the same host: started here, once, and waited for. Returns
  // its result; if it fails, this one is undone. When this saga is undone, its children are: each in its
  // turn, like a step. One that is HELD then holds this one up, which says so in last_error.
  template <class In, class Out, class Given>
  auto child(const saga_type<In, Out>& what, std::string_view entity, Given&& input) {
    return ask_child<detail::read_result<Out>>(what, entity, false, std::forward<Given>(input));
  }
  // Likewise, and tells how it ended, for bodies that know another way.
  template <class In, class Out, class Given>
  auto attempt_child(const saga_type<In, Out>& what, std::string_view entity, Given&& input) {
    return ask_child<detail::read_outcome<Out>>(what, entity, true, std::forward<Given>(input));
  }

  // Undoes everything that was done. Does not return.
  auto undo(std::string_view reason) {
    return detail::awaited_answer<detail::read_nothing>(
        *scope_, {.kind = detail::question_kind::undo, .name = std::string(reason)});
  }

  // Runs branches side by side, each made with a saga of its own: saga.branch(0), saga.branch(1), …
  template <class... Flows>
  auto all(Flows&... branches) {
    return detail::awaited_branches<Flows...>(*scope_, branches...);
  }
  template <class... Flows>
  void all(Flows&&...) = delete;  // give every branch a name first: GCC 12 destroys temporaries twice
  saga branch(int number) {
    saga made(scope_->host->scope(scope_->path + std::to_string(scope_->forks) + '.' +
                                  std::to_string(number) + '/'));
    made.scope_->told_at = scope_->told_at;  // until it has an answer of its own
    return made;
  }

  // Which of the ways of this body a saga goes: `current` if it gets here for the first time, the number that
  // it got then if it has been here, 0 if it was already past this place when the body learned to ask.
  auto version(std::string_view change, std::int64_t current = 1) {
    return detail::awaited_answer<detail::read_version>(
        *scope_, {.kind = detail::question_kind::version, .name = std::string(change), .current = current});
  }

  // When the last answer was noted; before the first one, when the saga was started.
  timestamp now() const { return scope_->told_at; }
  // The same whenever the body gets here.
  uuid new_id() { return detail::derived_saga_uuid(id(), scope_->path, ++scope_->ids); }
  saga_id id() const { return scope_->host->id(); }
  const std::string& entity() const { return scope_->host->entity(); }

 private:
  template <class Read, class Step, class... Given>
  auto ask_step(const Step& what, bool may_fail, Given&&... given) {
    static_assert((detail::safe_to_await<Given> && ...),
                  "settle: give this argument a name first: GCC 12 destroys temporaries twice in an "
                  "expression with co_await");
    return detail::awaited_answer<Read>(*scope_, {.kind = detail::question_kind::step,
                                                  .step = what.core(),
                                                  .name = what.name(),
                                                  .input = what.store(given...),
                                                  .may_fail = may_fail});
  }

  template <class Read, class In, class Out, class Given>
  auto ask_child(const saga_type<In, Out>& what, std::string_view entity, bool may_fail, Given&& input) {
    static_assert(detail::safe_to_await<Given>,
                  "settle: give this argument a name first: GCC 12 destroys temporaries twice in an "
                  "expression with co_await");
    return detail::awaited_answer<Read>(*scope_,
                                        {.kind = detail::question_kind::child,
                                         .child = what.definition(),
                                         .name = what.name(),
                                         .input = detail::child_input(entity, detail::store<In>(input)),
                                         .may_fail = may_fail});
  }

  detail::flow_scope* scope_;
};

namespace detail {

// A body that runs, as the engine sees it.
class running_body {
 public:
  virtual ~running_body() = default;
  virtual std::coroutine_handle<> frame() const = 0;
  virtual std::string result() = 0;  // throws what the body has thrown
};

struct any_step {
  template <class Via, class R, class... Args>
  any_step(const step<Via, R, Args...>& of) : core(of.core()) {}
  template <class Command, class Reply, class... Args>
  any_step(const command_step<Command, Reply, Args...>& of) : core(of.core()) {}
  step_pointer core;
};

// A kind of saga, whatever it is made of.
struct saga_definition {
  std::string type;
  int version = 1;
  std::vector<step_pointer> steps = {};
  std::function<std::unique_ptr<running_body>(flow_scope& root, std::string_view input)> begin = {};
};

std::shared_ptr<const saga_definition> checked(saga_definition of);

template <class In, class Out>
class typed_body final : public running_body {
 public:
  typed_body(flow_scope& root, std::string_view input, flow<Out> (*body)(saga&, const In&))
      : saga_(root), input_(read_stored<In>(input)), flow_(body(saga_, input_)) {}
  std::coroutine_handle<> frame() const override { return flow_.frame(); }
  std::string result() override {
    if constexpr (std::is_void_v<Out>) {
      flow_.frame().promise().take();
      return {};
    } else {
      return store(flow_.frame().promise().take());
    }
  }

 private:
  saga saga_;
  In input_;
  flow<Out> flow_;
};

saga_definition list_of_steps(std::string_view type, int version, std::vector<step_pointer> steps);

}  // namespace detail

// A kind of saga: name, version, body, and every step that the body may ask for.
template <class In, class Out = void>
class saga_type {
 public:
  using input_type = In;
  using result_type = Out;

  saga_type(std::string_view type, int version, flow<Out> (*body)(saga&, const In&),
            std::initializer_list<detail::any_step> steps) {
    detail::saga_definition made{std::string(type), version};
    for (const auto& one : steps) made.steps.push_back(one.core);
    made.begin = [body](detail::flow_scope& root, std::string_view input) {
      return std::make_unique<detail::typed_body<In, Out>>(root, input, body);
    };
    definition_ = detail::checked(std::move(made));
  }
  explicit saga_type(detail::saga_definition of) : definition_(detail::checked(std::move(of))) {}

  const std::shared_ptr<const detail::saga_definition>& definition() const { return definition_; }
  const std::string& name() const { return definition_->type; }

 private:
  std::shared_ptr<const detail::saga_definition> definition_;
};

// A saga that is a list of steps, each of which takes the saga's input; if one is refused, those before it
// are undone, the last one first.
template <class In, class... Steps>
saga_type<In> saga_of(std::string_view type, int version, const Steps&... steps) {
  return saga_type<In>(detail::list_of_steps(type, version, {steps.core()...}));
}

}  // namespace settle::inline v0

#pragma GCC visibility pop
