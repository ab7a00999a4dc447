// Steps that others do: an event goes to them over any broker, and an event answers it.
//
//   const auto reserve =
//       settle::command<reserve_stock, stock_reserved>("reserve_stock", [](const order& o) {
//         return reserve_stock{o.id, o.items};
//       })
//           .within(30s)
//           .refused<out_of_stock>([](const out_of_stock& e) { return e.why; })
//           .undo<release_stock>([](const order& o) { return release_stock{o.id}; });
//
//   const auto reserved = co_await saga.run(reserve, o);  // a stock_reserved
//
// The command is staged in the transaction that notes it, under an id that follows from the saga and the
// step, so it is sent exactly when that commits, by the relay (settle/relay.hpp). A reply belongs to the
// command whose id it carries as `causationid`: what a Settle consumer's handler publishes does by itself,
// and a participant in another language copies the command's id into that attribute. The host must have a
// broker, and be told of no event of the reply's type by on().
//
// Without a reply in time nobody knows whether it was done: a command with an undo counts as refused, and the
// undo is sent; one without, or a pivot, is HELD, and a reply that comes later still counts after a retry.
// The undo is another command for the same topic with the same key, so that it arrives behind; nobody answers
// it. Its participant has to tell whether the action had come: settle/on_command.hpp does that.
//
// `settlesaga`, `settlestep` and `settleop` (do, undo) say what a command is for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "settle/codec.hpp"
#include "settle/saga_step.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {
namespace detail {

// Publishes what a saga commands, under the id of this attempt.
void stage_command(transaction& tx, const call& of, event what);

template <class Command, class Reply, class... Args>
class typed_command final : public step_core {
 public:
  std::function<Command(const Args&...)> make;
  std::function<event(const Args&..., const std::string* reply)> make_undo;

  std::string perform(transaction* tx, call* via, std::string_view input) const override {
    const auto args = read_all<Args...>(input);
    stage_command(*tx, *via, to_event(std::apply(make, args)));
    return {};
  }
  void undo(transaction* tx, call* via, std::string_view input, const std::string* result) const override {
    const auto args = read_all<Args...>(input);
    auto event = std::apply([&](const Args&... each) { return make_undo(each..., result); }, args);
    event.key = codec<Command>::key(std::apply(make, args));  // behind the action
    stage_command(*tx, *via, std::move(event));
  }
  std::pair<finding, std::string> find(call&, std::string_view) const override {
    return {finding::unknown, {}};
  }
};

}  // namespace detail

template <class Command, class Reply, class... Args>
class command_step {
  using typed = detail::typed_command<Command, Reply, Args...>;

 public:
  using result_type = Reply;

  command_step(std::string_view name, std::function<Command(const Args&...)> make) {
    detail::check_step_name(name);
    detail::require_codec<Command>();
    auto made = std::make_shared<typed>();
    made->name = name;
    made->make = std::move(make);
    made->command = true;
    if constexpr (!std::is_void_v<Reply>) {
      detail::require_codec<Reply>();
      made->replies.push_back({std::string(codec<Reply>::topic), std::string(codec<Reply>::type)});
      made->reply_within = std::chrono::minutes(5);
    }
    core_ = std::move(made);
  }

  // How long to wait for the reply. 5 minutes unless it is said.
  command_step within(duration reply_within) const
    requires(!std::is_void_v<Reply>)
  {
    return changed([&](typed& made) { made.reply_within = reply_within; });
  }

  // An event that answers with no: the step was not done, for the reason that the function returns.
  template <class Refusal>
  command_step refused(std::function<std::string(const Refusal&)> why) const
    requires(!std::is_void_v<Reply>)
  {
    detail::require_codec<Refusal>();
    return changed([&](typed& made) {
      made.replies.push_back({std::string(codec<Refusal>::topic), std::string(codec<Refusal>::type),
                              [why = std::move(why)](std::string_view payload) {
                                return why(codec<Refusal>::decode(payload));
                              }});
    });
  }

  // Takes what the step takes and, if it wants it, the reply: `const std::optional<Reply>&`.
  template <class Undo, class Make>
  command_step undo(Make how) const {
    detail::require_codec<Undo>();
    static_assert(
        codec<Undo>::topic == codec<Command>::topic,
        "settle: the undo of a command goes to the topic of the command, so that it arrives behind");
    return changed([&](typed& made) {
      made.make_undo = [how = std::move(how)](const Args&... args, const std::string* reply) -> event {
        if constexpr (std::is_invocable_v<const Make&, const Args&...>) {
          (void)reply;
          return to_event(Undo(how(args...)));
        } else {
          const auto known = reply ? std::optional<Reply>(codec<Reply>::decode(*reply)) : std::nullopt;
          return to_event(Undo(how(args..., known)));
        }
      };
      made.has_undo = true;
    });
  }

  // How the publishing is tried again; replies are waited for once.
  command_step retry(const step_retry& how) const {
    return changed([&](typed& made) { made.retry = how; });
  }
  // After it nothing is undone any more: see step::pivot().
  command_step pivot() const {
    return changed([&](typed& made) { made.pivot = true; });
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
  command_step changed(Change change) const {
    auto made = std::make_shared<typed>(static_cast<const typed&>(*core_));
    change(*made);
    auto copy = *this;
    copy.core_ = std::move(made);
    return copy;
  }

  detail::step_pointer core_;
};

namespace detail {

template <class Command, class Reply, class Make, class First, class... Rest>
auto make_command(std::string_view name, Make make, std::type_identity<std::tuple<First, Rest...>>) {
  static_assert(storable<First> && (storable<Rest> && ...),
                "settle: a saga stores inputs of its steps, and does not know how to store this type: write "
                "`template <> struct settle::codec<your_type>` with encode and decode");
  return command_step<Command, Reply, First, Rest...>(name, std::move(make));
}

template <class F>
struct every_argument : every_argument<decltype(&F::operator())> {};
template <class R, class... All>
struct every_argument<R (*)(All...)> {
  using type = std::tuple<std::remove_cvref_t<All>...>;
};
template <class R, class C, class... All>
struct every_argument<R (C::*)(All...) const> : every_argument<R (*)(All...)> {};
template <class R, class... All>
struct every_argument<R(All...)> : every_argument<R (*)(All...)> {};

}  // namespace detail

// Of (const Arguments&...), which makes the command. Without a Reply it is done when it is sent.
template <class Command, class Reply = void, class Make>
auto command(std::string_view name, Make make) {
  return detail::make_command<Command, Reply>(
      name, std::move(make), std::type_identity<typename detail::every_argument<Make>::type>());
}

}  // namespace settle::inline v0

#pragma GCC visibility pop
