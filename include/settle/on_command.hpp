// The participant's side of a saga's command (settle/saga_command.hpp): does it once, and answers.
//
//   settle::consumer stock(*db, *broker, {.name = "stock"});
//   settle::on_command<reserve_stock>(stock, [](const reserve_stock& c, settle::transaction& tx)
//       -> std::variant<stock_reserved, out_of_stock> {
//     …
//   });
//   settle::on_command<release_stock>(stock, [](const release_stock& c, settle::transaction& tx) { … });
//
// What the handler returns is published in the same transaction, and so belongs to the command. The guard of
// settle/participate.hpp stands before the handler: an undo whose action never came is skipped, and the
// action is not done when it comes later. A command of nobody's saga is handled all the same.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "settle/consume.hpp"
#include "settle/participate.hpp"
#include "settle/publish.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// What a command is for; nothing: it was not sent by a saga. Throws invalid_argument if it says half of it.
std::optional<saga_call> saga_call_of(const message& command);

namespace detail {

template <class T>
struct is_variant : std::false_type {};
template <class... T>
struct is_variant<std::variant<T...>> : std::true_type {};

template <class Command, class Handler>
void answer_command(const Handler& handler, const Command& what, transaction& tx) {
  using result = std::invoke_result_t<const Handler&, const Command&, transaction&>;
  if constexpr (std::is_void_v<result>) {
    handler(what, tx);
  } else {
    const result answer = handler(what, tx);
    if constexpr (is_variant<result>::value)
      std::visit([&](const auto& one) { publish(tx, one); }, answer);
    else
      publish(tx, answer);
  }
}

}  // namespace detail

// A handler of (const Command&, transaction&) that returns the event that answers, a variant of several, or
// nothing.
template <class Command, class Handler>
consumer& on_command(consumer& at, Handler handler) {
  static_assert(std::is_invocable_v<const Handler&, const Command&, transaction&>,
                "settle: a handler of on_command<Command> takes (const Command&, settle::transaction&)");
  return at.on<Command>(
      [handler = std::move(handler)](const Command& what, transaction& tx, const message& m) {
        const auto of = saga_call_of(m);
        if (of && !participate(tx, *of).fresh()) return;
        detail::answer_command<Command>(handler, what, tx);
      });
}

}  // namespace settle::inline v0

#pragma GCC visibility pop
