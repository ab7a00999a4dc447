#include "saga/replay.hpp"

#include <deque>
#include <map>
#include <memory>

#include "base/hash.hpp"

namespace settle::sagas {
namespace {

using detail::answer_kind;
using detail::question;
using detail::question_kind;

std::string asked_text(const question& what) {
  switch (what.kind) {
    case question_kind::step:
      return "the step " + what.name;
    case question_kind::sleep:
      return "a sleep";
    case question_kind::wait:
      return "a wait for " + what.name;
    case question_kind::version:
      return "the version of " + what.name;
    case question_kind::undo:
      return "being undone: " + what.name;
    default:
      return what.name;
  }
}

std::string row_text(const journal_row& row) {
  switch (row.kind) {
    case row_kind::timer:
      return "a sleep";
    case row_kind::waiting:
      return "a wait for " + row.name;
    case row_kind::version:
      return "the version of " + row.name;
    default:
      return "the step " + row.name;
  }
}

bool is_same(const question& what, const journal_row& row) {
  if (row.name != what.name) return false;
  switch (what.kind) {
    case question_kind::step:
      return row.kind == row_kind::done || row.kind == row_kind::refused || row.kind == row_kind::intent;
    case question_kind::sleep:
      return row.kind == row_kind::timer;
    case question_kind::wait:
      return row.kind == row_kind::waiting;
    case question_kind::version:
      return row.kind == row_kind::version;
    default:
      return true;  // of a kind that this does not know: by its name
  }
}

bool has_same_input(const question& what, const journal_row& row) {
  if (row.input) return *row.input == what.input;
  return !row.input_hash || *row.input_hash == static_cast<std::int64_t>(stable_hash(what.input));
}

// A deadline is kept as a time; the question says how long after it was asked.
bool has_same_deadline(const question& what, const journal_row& row) {
  if (row.kind != row_kind::timer && row.kind != row_kind::waiting) return true;
  if (what.within.has_value() != row.result.has_value()) return false;
  return !what.within || detail::read_stored<timestamp>(*row.result) - row.at == *what.within;
}

class replayer final : public detail::body_host {
 public:
  replayer(saga_id id, const std::string& entity, const journal& rows)
      : id_(id), entity_(entity), rows_(rows) {}

  replayed run(const detail::saga_definition& what, std::string_view input, timestamp began) {
    auto& root = scope("");
    root.told_at = began;
    body_ = what.begin(root, input);
    ready_.push_back(body_->frame());
    while (!ready_.empty() && !stopped_) {
      const auto next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
    if (!stopped_ && body_->frame().done()) end();
    body_.reset();
    return std::move(found_);
  }

  bool ask(detail::flow_scope& in, question& what) override {
    if (stopped_) return false;
    const auto* row = rows_.opening(in.path, in.asked);
    if (what.kind == question_kind::version && (row == nullptr || !is_same(what, *row)))
      return answer_version(row, what);
    if (row == nullptr) return false;
    if (!is_same(what, *row))
      return differs("row " + std::to_string(row->n) + " of the journal is " + row_text(*row) +
                     ", and the body asks for " + asked_text(what));
    if (!has_same_input(what, *row))
      return differs(
          row_text(*row) + " is asked for with another input than before" +
          (row->input ? ": it was '" + *row->input + "', and is '" + what.input + "'" : std::string()));
    if (!has_same_deadline(what, *row))
      return differs(row_text(*row) + " is asked for with another time than before");
    ++in.asked;
    what.row = row->n;
    return tell(in, what, *row);
  }

  // It waits for what is not in the journal, and so for ever.
  void wait(detail::flow_scope&, question&, std::coroutine_handle<>) override {}
  void begin(std::coroutine_handle<> branch) override { ready_.push_back(branch); }
  void resume(std::coroutine_handle<> parent) override { ready_.push_back(parent); }
  detail::flow_scope& scope(std::string path) override {
    auto& found = scopes_[path];
    found.host = this;
    found.path = std::move(path);
    return found;
  }
  saga_id id() const override { return id_; }
  const std::string& entity() const override { return entity_; }

 private:
  bool differs(std::string why) {
    found_.difference = std::move(why);
    stopped_ = true;
    return false;
  }

  // As the engine does it: one that was past this place before the body learned to ask goes the old way.
  static bool answer_version(const journal_row* row, question& what) {
    what.answer = answer_kind::done;
    what.result = row != nullptr ? "0" : std::to_string(what.current);
    return true;
  }

  bool tell(detail::flow_scope& in, question& what, const journal_row& row) {
    const bool alone =
        row.kind == row_kind::done || row.kind == row_kind::refused || row.kind == row_kind::version;
    const auto* answer = alone ? &row : rows_.answer_of(row.n);
    if (answer == nullptr) return false;
    if (row.kind != row_kind::version) in.told_at = answer->at;
    what.result = answer->result.value_or("");
    what.answer = answer_kind::done;
    if (answer->kind == row_kind::timed_out) what.answer = answer_kind::timed_out;
    if (answer->kind == row_kind::refused) {
      what.answer = answer_kind::refused;
      what.outcome_unknown = rows_.about(row.n, row_kind::unknown) != nullptr;
      return what.may_fail;  // else the body ends here, and is undone
    }
    return true;
  }

  void end() {
    try {
      found_.result = body_->result();
    } catch (const std::exception& e) {
      found_.threw = true;
      differs(std::string("the body throws: ") + e.what());
      return;
    }
    found_.ended = true;
    for (const auto& [path, count] : rows_.openings()) {
      const auto asked = scope(path).asked;
      if (asked == count) continue;
      const auto& row = *rows_.opening(path, asked);
      differs("the body ends, and row " + std::to_string(row.n) + " of the journal is " + row_text(row));
      return;
    }
  }

  saga_id id_;
  const std::string& entity_;
  const journal& rows_;
  std::map<std::string, detail::flow_scope> scopes_;
  std::unique_ptr<detail::running_body> body_;  // destroyed before the scopes
  std::deque<std::coroutine_handle<>> ready_;
  replayed found_;
  bool stopped_ = false;
};

}  // namespace

replayed replay(const detail::saga_definition& what, saga_id id, const std::string& entity,
                std::string_view input, timestamp began, const journal& rows) {
  return replayer(id, entity, rows).run(what, input, began);
}

}  // namespace settle::sagas
