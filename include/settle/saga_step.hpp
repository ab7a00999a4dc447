// Steps of sagas: values made of a name, what to do, and how to undo it.
//
//   const auto reserve = settle::local("reserve_inventory", reserve_stock).undo(release_stock);
//   const auto charge  = settle::remote("charge_payment", charge_card).undo(refund_card);
//
//   std::int64_t reserve_stock(settle::transaction& tx, const order& o);
//   void release_stock(settle::transaction& tx, const order& o, const std::int64_t& reserved);
//   std::string charge_card(settle::call& call, const order& o);
//   void refund_card(settle::call& call, const order& o, const std::optional<std::string>& charge);
//
// A local step writes in the transaction that also notes that it is done: its effect happens once. A remote
// one asks somebody else. It may have to ask twice, with the same call.key(), and the other side tells copies
// by it; its undo is given no result if nobody knows whether it was done.
//
// What a step throws. settle::step_refused: it was not done, and never will be; the saga's body or its undo
// decides what follows. From a local step anything else: tried again by its class (settle/failure.hpp), then
// refused. From a remote step settle::call_not_made: it was certainly not done, and is tried again; anything
// else: nobody knows whether it was done.
//
// Steps are looked up by name, also by a program that is newer than the saga: keep the names and the stored
// forms of inputs.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "settle/database.hpp"
#include "settle/failure.hpp"
#include "settle/ids.hpp"
#include "settle/storable.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

using saga_id = id<struct saga_kind>;

// The step was not done and must not be tried again.
class step_refused : public handler_failed {
 public:
  explicit step_refused(const std::string& why) : handler_failed(failure_class::permanent, why) {}
};

// The other side was certainly not reached, or has certainly not begun: no connection, 429.
class call_not_made : public handler_failed {
 public:
  // `wait`: how long it asks not to be asked again, at least.
  explicit call_not_made(const std::string& why, duration wait = {})
      : handler_failed(failure_class::outage, why), wait_(wait) {}
  duration wait() const { return wait_; }

 private:
  duration wait_;
};

// Nobody knows whether it was done, as with any other exception, but it is known how long to wait.
class call_unknown : public handler_failed {
 public:
  explicit call_unknown(const std::string& why, duration wait = {})
      : handler_failed(failure_class::transient, why), wait_(wait) {}
  duration wait() const { return wait_; }

 private:
  duration wait_;
};

// One attempt of a remote step.
class call {
 public:
  struct facts {
    saga_id saga;
    std::string step;  // with the path of its branch, and the number of its occurrence
    std::string key;
    std::int64_t epoch = 0;
    bool undo = false;
  };
  explicit call(facts of) : facts_(std::move(of)) {}

  saga_id saga() const { return facts_.saga; }
  const std::string& step() const { return facts_.step; }
  // The same for every attempt of this step of this saga: the Idempotency-Key.
  const std::string& key() const { return facts_.key; }
  // Grows when another process takes over: who has seen a higher one refuses this.
  std::int64_t epoch() const { return facts_.epoch; }
  bool is_undo() const { return facts_.undo; }

 private:
  facts facts_;
};

// What follows when nobody knows whether a remote step was done.
enum class unknown {
  unsaid,  // repeated if it has an undo, else not accepted
  repeat,  // the same call with the same key: for those that tell copies by it
  ask,     // the function given with it finds out
  hold,    // a person decides
};

// What somebody who was asked about a step has said. "I know nothing of it" is `unknown` as long as the call
// may still arrive; `never` means that it cannot happen any more.
enum class finding { done, never, unknown };
template <class T>
struct found_step {
  finding what = finding::unknown;
  std::optional<T> result = {};
};
template <>
struct found_step<void> {
  finding what = finding::unknown;
};

struct step_retry {
  std::int64_t attempts_max = 5;
  std::int64_t undo_attempts_max = 20;
  // The pause after the n-th failure: n² times this, at most wait_max.
  duration wait = std::chrono::milliseconds(100);
  duration wait_max = std::chrono::seconds(30);
};

namespace detail {

// An event that answers a command.
struct reply_kind {
  std::string topic, type;
  std::function<std::string(std::string_view payload)> refusal = {};  // why not; none: it was done
};

// A step as the engine sees it: bytes in, bytes out.
class step_core {
 public:
  virtual ~step_core() = default;
  virtual std::string perform(transaction* tx, call* via, std::string_view input) const = 0;
  virtual void undo(transaction* tx, call* via, std::string_view input, const std::string* result) const = 0;
  virtual std::pair<finding, std::string> find(call& via, std::string_view input) const = 0;

  std::string name;
  bool remote = false;
  bool has_undo = false;
  bool pivot = false;
  bool can_find = false;
  settle::unknown on_unknown = settle::unknown::unsaid;
  step_retry retry = {};
  // Of a command, which is published in the tick's transaction: what answers it. Nothing does: it is done
  // then.
  bool command = false;
  std::vector<reply_kind> replies = {};
  duration reply_within{};
};

using step_pointer = std::shared_ptr<const step_core>;

// A function's result and its arguments after the first.
template <class F>
struct signature : signature<decltype(&F::operator())> {};
template <class R, class First, class... Rest>
struct signature<R (*)(First, Rest...)> {
  using result = R;
  using arguments = std::tuple<std::remove_cvref_t<Rest>...>;
  using first = First;
};
template <class R, class C, class First, class... Rest>
struct signature<R (C::*)(First, Rest...) const> : signature<R (*)(First, Rest...)> {};
template <class R, class First, class... Rest>
struct signature<R(First, Rest...)> : signature<R (*)(First, Rest...)> {};
template <class R, class First, class... Rest>
struct signature<R (*)(First, Rest...) noexcept> : signature<R (*)(First, Rest...)> {};

// What an undo may take of a result: nothing, or the result itself. Of a remote step an optional one.
template <class Via, class R>
struct undo_argument {
  using type = std::conditional_t<std::same_as<Via, transaction>, R, std::optional<R>>;
};
template <class Via>
struct undo_argument<Via, void> {
  using type = void;
};

template <class Via, class R, class... Args>
class typed_step final : public step_core {
 public:
  std::function<R(Via&, const Args&...)> work;
  std::function<void(Via&, const Args&..., const std::string*)> back;
  std::function<found_step<R>(call&, const Args&...)> asking;

  std::string perform(transaction* tx, call* via, std::string_view input) const override {
    const auto args = read_all<Args...>(input);
    if constexpr (std::is_void_v<R>) {
      std::apply([&](const Args&... each) { work(side(tx, via), each...); }, args);
      return {};
    } else {
      return store<std::remove_cvref_t<R>>(
          std::apply([&](const Args&... each) { return work(side(tx, via), each...); }, args));
    }
  }

  void undo(transaction* tx, call* via, std::string_view input, const std::string* result) const override {
    const auto args = read_all<Args...>(input);
    std::apply([&](const Args&... each) { back(side(tx, via), each..., result); }, args);
  }

  std::pair<finding, std::string> find(call& via, std::string_view input) const override {
    const auto args = read_all<Args...>(input);
    const auto found = std::apply([&](const Args&... each) { return asking(via, each...); }, args);
    if constexpr (std::is_void_v<R>)
      return {found.what, {}};
    else
      return {found.what, found.result ? store(*found.result) : std::string()};
  }

  template <class Undo>
  void set_undo(Undo how) {
    if constexpr (std::is_void_v<R> || std::invocable<const Undo&, Via&, const Args&...>) {
      back = [how = std::move(how)](Via& via, const Args&... args, const std::string*) { how(via, args...); };
    } else {
      using wanted = typename undo_argument<Via, R>::type;
      back = [how = std::move(how)](Via& via, const Args&... args, const std::string* result) {
        if constexpr (std::same_as<Via, transaction>)
          how(via, args..., read_stored<R>(*result));
        else
          how(via, args..., result ? wanted(read_stored<R>(*result)) : wanted());
      };
    }
    has_undo = true;
  }

 private:
  static Via& side(transaction* tx, call* via) {
    if constexpr (std::same_as<Via, transaction>)
      return *tx;
    else
      return *via;
  }
};

template <class Via, class R, class Undo, class... Args>
concept undoes =
    std::invocable<const Undo&, Via&, const Args&...> ||
    std::invocable<const Undo&, Via&, const Args&..., const typename undo_argument<Via, R>::type&>;

template <class T, class Undo, class Via, class... Args>
constexpr bool undo_fits() {
  if constexpr (std::is_void_v<T>)
    return std::invocable<const Undo&, Via&, const Args&...>;
  else
    return undoes<Via, T, Undo, Args...>;
}

void check_step_name(std::string_view name);

}  // namespace detail

template <class Via, class R, class... Args>
class step {
  using typed = detail::typed_step<Via, R, Args...>;

 public:
  using result_type = R;

  step(std::string_view name, std::function<R(Via&, const Args&...)> work) {
    detail::check_step_name(name);
    auto made = std::make_shared<typed>();
    made->name = name;
    made->work = std::move(work);
    made->remote = std::same_as<Via, call>;
    core_ = std::move(made);
  }

  // Takes what the step takes, and its result if it wants it. Must be repeatable: on a remote side it may run
  // twice with the same key, and find nothing to undo.
  template <class Undo>
  step undo(Undo how) const {
    static_assert(
        detail::undo_fits<R, Undo, Via, Args...>(),
        "settle: the undo of a step takes what the step takes and, if it wants it, the result: of a "
        "local step `const R&`, of a remote one `const std::optional<R>&`");
    if constexpr (detail::undo_fits<R, Undo, Via, Args...>())
      return changed([&](typed& made) { made.set_undo(std::move(how)); });
    else
      return *this;
  }

  step retry(const step_retry& how) const {
    return changed([&](typed& made) { made.retry = how; });
  }

  // After it nothing is undone any more: later steps are tried until they work, or a person helps.
  step pivot() const {
    return changed([&](typed& made) { made.pivot = true; });
  }

  step on_unknown(unknown what) const
    requires std::same_as<Via, call>
  {
    return changed([&](typed& made) { made.on_unknown = what; });
  }
  template <class Find>
  step on_unknown(unknown what, Find find) const
    requires std::same_as<Via, call>
  {
    return changed([&](typed& made) {
      made.on_unknown = what;
      made.asking = std::move(find);
      made.can_find = true;
    });
  }

  const std::string& name() const { return core_->name; }
  const detail::step_pointer& core() const { return core_; }

  template <class... Given>
  std::string store(const Given&... given) const {
    static_assert(sizeof...(Given) == sizeof...(Args), "settle: the step takes another number of arguments");
    return detail::store_all<Args...>(given...);
  }

 private:
  template <class Change>
  step changed(Change change) const {
    auto made = std::make_shared<typed>(static_cast<const typed&>(*core_));
    change(*made);
    auto copy = *this;
    copy.core_ = std::move(made);
    return copy;
  }

  detail::step_pointer core_;
};

namespace detail {

template <class T>
constexpr bool may_be_result = storable<T>;
template <>
inline constexpr bool may_be_result<void> = true;

template <class Via, class R, class Work, class... Args>
auto make_step(std::string_view name, Work work, std::type_identity<std::tuple<Args...>>) {
  constexpr bool fits = (storable<Args> && ...) && may_be_result<R>;
  static_assert(fits,
                "settle: a saga stores inputs and results of its steps, and does not know how to store this "
                "type: write `template <> struct settle::codec<your_type>` with encode and decode");
  if constexpr (fits)
    return step<Via, R, Args...>(name, std::move(work));
  else
    return step<Via, void>(name, [](Via&) {});
}

}  // namespace detail

// A step in the saga's own database: (settle::transaction&, const Arguments&...).
template <class Work>
auto local(std::string_view name, Work work) {
  using shape = detail::signature<Work>;
  static_assert(std::same_as<typename shape::first, transaction&>,
                "settle: a local step takes a settle::transaction& first");
  return detail::make_step<transaction, std::remove_cvref_t<typename shape::result>>(
      name, std::move(work), std::type_identity<typename shape::arguments>());
}

// A step somewhere else: (settle::call&, const Arguments&...). It may block; it has a thread meanwhile.
template <class Work>
auto remote(std::string_view name, Work work) {
  using shape = detail::signature<Work>;
  static_assert(std::same_as<typename shape::first, call&>,
                "settle: a remote step takes a settle::call& first");
  return detail::make_step<call, std::remove_cvref_t<typename shape::result>>(
      name, std::move(work), std::type_identity<typename shape::arguments>());
}

}  // namespace settle::inline v0

#pragma GCC visibility pop
