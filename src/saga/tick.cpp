#include "saga/tick.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "queries/saga.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "sql/handler_scope.hpp"
#include "sql/undo_point.hpp"

namespace settle::sagas {
namespace {

constexpr std::size_t error_bytes_max = 1000;

// What is being handled.
performed failed_now() {
  performed failed{.how = performed::end::failed, .why = failure_class::poison};
  try {
    throw;
  } catch (const std::exception& e) {
    failed.why = class_of(e);
    failed.error = storable_text(e.what(), error_bytes_max);
  } catch (...) {
    failed.error = "the step threw something that is not a std::exception";
  }
  return failed;
}

bool is_cancelled() {
  try {
    throw;
  } catch (const error& e) {
    return e.code() == errc::cancelled;
  } catch (...) {
    return false;
  }
}

}  // namespace

void caution::failed() {
  now_ = now_ == care::plain ? care::careful : care::single;
  left_ = now_ == care::single ? single_for : careful_for;
}

void caution::succeeded() {
  if (now_ == at_least_ || --left_ > 0) return;
  now_ = now_ == care::single ? std::max(care::careful, at_least_) : at_least_;
  left_ = careful_for;
}

tick::tick(database& db, owned_transaction& tx, care level, const limits& within)
    : db_(db), tx_(tx), level_(level), within_(within), started_(db.env().now()) {}

bool tick::is_full() const { return db_.env().now() - started_ > within_.time_max; }

bool tick::take_step() {
  const auto most = level_ == care::single ? 1 : std::max<std::size_t>(within_.steps_max, 1);
  if (failure_ || steps_ >= most || (steps_ > 0 && is_full())) return false;
  ++steps_;
  return true;
}

std::string tick::run(const std::function<std::string(transaction&)>& work) {
  read_beside_ = false;
  const sql::handler_scope scope(db_, &read_beside_);
  return with_fault_points(db_.env(), "saga.step", [&] { return work(tx_); });
}

performed tick::aborted() {
  failure_ = std::current_exception();
  return {.how = performed::end::aborted};
}

performed tick::perform(const std::function<std::string(transaction&)>& work) {
  const auto began = clock();
  auto ended = perform_now(work);
  in_steps_ += clock() - began;
  return ended;
}

// A step that fails before it has sent anything has failed alone, whoever shares the transaction.
performed tick::perform_now(const std::function<std::string(transaction&)>& work) {
  if (level_ != care::plain) return perform_alone(work);
  try {
    performed done{.result = run(work)};
    transaction_parts::end(tx_);
    return done;
  } catch (...) {
    if (is_cancelled()) return aborted();
    auto failed = failed_now();
    if (!read_beside_ && transaction_parts::drop(tx_)) return failed;
    failure_ = std::make_exception_ptr(tick_spoilt(failed.error));
    return {.how = performed::end::aborted};
  }
}

performed tick::perform_alone(const std::function<std::string(transaction&)>& work) try {
  sql::undo_point before(tx_);
  const bool posts = db_.speaks() == dialect::postgres;
  // A savepoint that is sent together with a statement that fails does not count as set (sql/savepoints.hpp).
  if (posts) tx_.execute(queries::saga::await_step);
  try {
    performed done{.result = run(work)};
    // What the step has only posted fails here, where it can be taken back.
    if (posts) tx_.execute(queries::saga::await_step);
    before.leave();
    transaction_parts::end(tx_);
    return done;
  } catch (...) {
    if (is_cancelled()) throw;
    auto failed = failed_now();
    before.undo();
    transaction_parts::end(tx_);
    return failed;
  }
} catch (...) {
  return aborted();
}

}  // namespace settle::sagas
