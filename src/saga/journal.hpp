// What a saga has done, row by row. Pure: who reads it decides, who appends to it writes it down.
//
// A row either opens something (a step, a timer, a wait) or is about a row that did, `of` it. Things are
// opened in scopes, the paths of branches, and in each scope the n-th thing that a body asks for must be the
// n-th that was opened there.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settle/environment.hpp"

namespace settle::sagas {

// Numbers are stored: never change them.
enum class row_kind {
  done = 1,         // a local step, with its effect
  refused = 2,      // a local step, or the answer of a remote one
  intent = 3,       // a remote step is about to be asked for
  outcome = 4,      // it was done
  unknown = 5,      // nobody knows whether it was done; at most one per intent
  timer = 6,        // until `result`
  waiting = 7,      // for the event `name` with the key `input`, until `result` if there is one
  event = 8,        // it came
  timed_out = 9,    // a timer, or a wait
  child = 10,       // a saga of its own
  version = 11,     // the body's way, `result`
  undo_begun = 12,  // for the reason in `result`
  undo_intent = 13,
  undone = 14,
  operated = 15,  // a person has decided something
  held = 16,
};
std::string_view to_string(row_kind of);

struct journal_row {
  int n = 0;  // from 1 on
  row_kind kind{};
  std::string scope = {};
  std::string name = {};
  std::optional<std::string> input = {};
  std::optional<std::int64_t> input_hash = {};
  std::optional<std::string> result = {};
  std::optional<int> of = {};
  timestamp at{};
  std::int64_t epoch = 0;
};

// The input of a row `refused` that ends all doubt: who was asked says that it cannot happen any more.
inline constexpr std::string_view never_done = "never";

bool opens(const journal_row& row);

class journal {
 public:
  // Numbers the row, unless it comes with the next number. Returns it.
  const journal_row& append(journal_row row);

  const std::deque<journal_row>& rows() const { return rows_; }
  const journal_row& at(int n) const;

  // The index-th row that opens something in a scope, from 0 on.
  const journal_row* opening(const std::string& scope, std::size_t index) const;
  // Scopes with rows, and how many things each of them opens.
  std::map<std::string, std::size_t> openings() const;

  // What ended the thing that row n has opened: outcome, refused, event or timed_out.
  const journal_row* answer_of(int n) const;
  // The last row of a kind about row n.
  const journal_row* about(int n, row_kind kind) const;
  const journal_row* last(row_kind kind) const;

  // How the outside knows what row n has opened: scope, name, and its number if it is not the first such.
  std::string outside_name(int n) const;
  // Of the next thing of this name that is opened there.
  std::string next_outside_name(const std::string& scope, const std::string& name) const;

 private:
  std::deque<journal_row> rows_;                      // stay where they are
  std::map<std::string, std::vector<int>> openings_;  // by scope
  std::map<int, std::vector<int>> about_;             // rows about a row
};

}  // namespace settle::sagas
