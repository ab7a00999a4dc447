// Sagas as people and as machines read them.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "inspect/sagas.hpp"

namespace settle::cli {

std::string sagas_text(const std::vector<inspect::saga_line>& of, timestamp now);

// Everything about one: where it stands, its timeline, and what a person can do.
std::string saga_text(const inspect::saga_state& of, timestamp now);

// "book_trip 1 of order-7"
std::string name_of(const inspect::saga_line& of);
// That nobody is there to act on it: a sentence's part.
std::string nobody_text(const inspect::saga_line& of);
// What it does or waits for now, a line each.
std::vector<std::string> doing_now(const inspect::saga_state& of, timestamp now);

boost::json::object line_json(const inspect::saga_line& of);
boost::json::object saga_json(const inspect::saga_state& of);

// What an operator may order of a saga that is HELD, and what follows.
struct possible_order {
  std::string order;    // "mark-done"
  std::string command;  // as it is typed
  std::string effect;   // a sentence's part
};
std::vector<possible_order> possible_orders(const inspect::saga_state& of);

// The command that delivers by hand what it waits for; empty: it waits for no event.
std::string signal_command(const inspect::saga_state& of);

}  // namespace settle::cli
