// All services of the daemon's file at a glance: a row each, then for each that needs a person the most
// urgent sentence.
#include <fmt/format.h>

#include "cli/attention.hpp"
#include "cli/hints.hpp"
#include "cli/status_report.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

using rows = std::vector<std::vector<std::string>>;

std::string state_text(const std::vector<std::string>& attention) {
  return attention.empty() ? "ok" : "attention";
}

std::vector<std::string> row_of(const listed_store& of, const inspect::service_answer& told) {
  std::vector<std::string> row{of.name, for_terminal(of.store)};
  if (!told.state) {
    row.resize(9);
    row.emplace_back("unknown");
    return row;
  }
  const auto& state = *told.state;
  std::int64_t parked = 0, dead = 0;
  for (const auto& one : state.consumers) {
    parked += one.parked;
    dead += one.dead_letters;
  }
  for (const auto& cell :
       {grouped(state.backlog.pending), state.oldest_pending_age ? age(*state.oldest_pending_age) : "",
        grouped(state.backlog.failed), grouped(parked), grouped(dead),
        grouped(inspect::sagas_in(state.sagas, "HELD")), grouped(state.relaying.alive),
        state_text(attention_of(state))})
    row.push_back(cell);
  return row;
}

std::vector<std::string> row_of(const listed_store& of, const inspect::broker_answer& told) {
  std::vector<std::string> row{of.name, for_terminal(of.store)};
  if (!told.state) {
    row.resize(5);
    row.emplace_back("unknown");
    return row;
  }
  std::int64_t messages = 0, lag = 0;
  for (const auto& one : told.state->topics) messages += one.messages.value_or(0);
  for (const auto& one : told.state->groups) lag += one.lag.value_or(0);
  for (const auto& cell : {grouped(static_cast<std::int64_t>(told.state->topics.size())), grouped(messages),
                           grouped(lag), state_text(attention_of(*told.state))})
    row.push_back(cell);
  return row;
}

std::string services_text(const status_of_all& all) {
  rows lines{{"service", "store", "pending", "oldest", "failed", "parked", "dead letters", "held sagas",
              "relays", "state"}};
  for (std::size_t i = 0; i < all.services.size(); ++i)
    lines.push_back(row_of(all.services[i], all.told.services[i]));
  using enum align;
  return table({left, left, right, right, right, right, right, right, right, left}, lines, 0);
}

std::string brokers_text(const status_of_all& all) {
  rows lines{{"broker", "store", "topics", "messages", "lag", "state"}};
  for (std::size_t i = 0; i < all.brokers.size(); ++i)
    lines.push_back(row_of(all.brokers[i], all.told.brokers[i]));
  using enum align;
  return table({left, left, right, right, right, left}, lines, 0);
}

template <class State>
std::string sentence_of(const listed_store& of, const inspect::answer_of<State>& told,
                        std::string_view see_more) {
  if (!told.state)
    return with_given(fmt::format("{}: unknown: {}\n", of.name, for_terminal(why_unknown(told))), of.given);
  const auto sentences = attention_of(*told.state);
  if (sentences.empty()) return {};
  const auto more = sentences.size() == 1 ? std::string()
                                          : fmt::format(" (and {} more: {})", sentences.size() - 1, see_more);
  return with_given(fmt::format("{}: {}{}\n", of.name, sentences.front(), more), of.given);
}

std::string attention_text(const status_of_all& all) {
  std::string out;
  for (std::size_t i = 0; i < all.services.size(); ++i)
    out += sentence_of(all.services[i], all.told.services[i], "`settle status`");
  for (std::size_t i = 0; i < all.brokers.size(); ++i)
    out += sentence_of(all.brokers[i], all.told.brokers[i], "`settle group list`");
  return out.empty() ? "nothing needs a person\n" : out;
}

}  // namespace

std::string status_text(const status_of_all& all) {
  return services_text(all) + '\n' + brokers_text(all) + '\n' + attention_text(all);
}

}  // namespace settle::cli
