#include "consume/handler_runner.hpp"

#include <utility>
#include <vector>

#include "base/check.hpp"
#include "consume/handler_run.hpp"
#include "consume/seams.hpp"
#include "settle/driver/database.hpp"
#include "sql/handler_scope.hpp"

namespace settle::consume {
namespace {

constexpr int batches_marked = 64;    // after one with a failure
constexpr int going_back_within = 4;  // times batch_time: others wait for the transaction

// What the events of its handler inherit.
origin cause_of(const message& m) {
  const auto extension = [&](std::string_view name) {
    const auto found = m.extensions.find(name);
    return found == m.extensions.end() ? std::string() : found->second;
  };
  auto correlation = extension("correlationid");
  if (correlation.empty()) correlation = m.id;
  return {std::move(correlation), m.id, extension("traceparent"), extension("tracestate")};
}

}  // namespace

handler_runner::handler_runner(database& db, const consumer_options& options, const handler_table& handlers,
                               failures& what_failed, const reporting& report)
    : db_(db),
      options_(options),
      handlers_(handlers),
      failures_(what_failed),
      watch_(options.handler_timeout,
             [&report, limit = options.handler_timeout] { report.handler_is_late(limit); }) {}

// A batch whose handlers run in this transaction.
class handler_runner::open_batch final : public handler_host {
 public:
  open_batch(handler_runner& home, owned_transaction& tx, batch messages, claimed_batch& of, attempt& watched)
      : home_(home), tx_(tx), messages_(messages), of_(of), watched_(watched) {
    transaction_parts::end(tx_);  // the claims
    marked_ =
        home_.mark_claims_ > 0 && messages.size() > 1 && !messages[0]->parked && transaction_parts::mark(tx_);
    if (home_.mark_claims_ > 0) --home_.mark_claims_;
    enough_ = home_.db_.env().now() + going_back_within * home_.options_.batch_time;
    begin();
  }

  // Neighbours of one handler for whole batches go to it together.
  std::size_t together(std::size_t at) const override {
    const auto* handler = handler_of(at);
    auto next = at + 1;
    if (handler == nullptr || !handler->all || of_.what[at] == verdict::replay) return 1;
    while (next < messages_.size() && of_.what[next] == verdict::run && handler_of(next) == handler) ++next;
    return next - at;
  }

  std::optional<failed_attempt> run(std::size_t at, std::size_t count) override {
    const auto& m = content_of(at);
    const auto* handler = handler_of(at);
    if (handler == nullptr && of_.what[at] == verdict::replay)
      return home_.failures_.describe(
          handler_failed(failure_class::permanent, "there is no handler for " + m.type), m);
    SETTLE_CHECK(handler != nullptr, "what has none is ignored, or stays parked");
    all_.assign(1, &m);
    for (auto next = at + 1; next < at + count; ++next) all_.push_back(&messages_[next]->what());
    ran_ += static_cast<std::int64_t>(count);
    return home_.call(*handler, all_, tx_, watched_);
  }

  // A handler that fails before it has heard anything of the database has failed alone, whoever shares its
  // transaction: nothing of theirs can have caused it. If what it has asked for was not even sent, there is
  // nothing of it to undo. What was parked runs nearly alone anyway, and what becomes of it is written
  // elsewhere.
  bool charge_at_once(std::size_t at, const failed_attempt& how) override {
    auto& one = *messages_[at];
    if (watched_.token().stop_requested() || how.why == failure_class::outage || one.parked) return false;
    if (home_.read_beside_) return false;
    if (!take_back_part(tx_)) return false;
    home_.failures_.failed_alone(one, how);
    return true;
  }

  // Not where handlers are slow, because others wait for the transaction.
  bool go_back() override {
    begin();
    return marked_ && home_.db_.env().now() <= enough_ && transaction_parts::drop_all(tx_);
  }

  void note_pace() const { home_.pace_.note(home_.db_.env().now() - started_, ran_); }

 private:
  void begin() {
    started_ = home_.db_.env().now();
    ran_ = 0;
  }
  const message& content_of(std::size_t at) const {
    return of_.what[at] == verdict::replay ? of_.letters.at(at).what : messages_[at]->what();
  }
  const handler* handler_of(std::size_t at) const { return home_.handlers_.of(content_of(at)); }

  handler_runner& home_;
  owned_transaction& tx_;
  batch messages_;
  claimed_batch& of_;
  attempt& watched_;
  bool marked_ = false;  // all handlers can be taken back
  timestamp enough_{};   // no more of that after this
  timestamp started_{};  // this pass
  std::int64_t ran_ = 0;
  std::vector<const message*> all_;
};

// Where the claims can be kept, and failures are likely, a message that fails takes only itself out of its
// batch: the others run once more, in the same transaction.
std::optional<failure> handler_runner::run(owned_transaction& tx, batch messages, claimed_batch& of,
                                           attempt& watched) {
  open_batch opened(*this, tx, messages, of, watched);
  auto why = run_handlers(messages, of, opened, {options_, db_.env().now()});
  if (messages.size() > 1 && (!of.failed.empty() || (why && why->at))) mark_claims_ = batches_marked;
  db_.env().counters->add_times("settle_consumer_handler_seconds", {{"consumer", options_.name}},
                                std::exchange(times_, {}));
  if (!why) opened.note_pace();
  return why;
}

std::optional<failed_attempt> handler_runner::call(const handler& what,
                                                   std::span<const message* const> messages, transaction& tx,
                                                   attempt& watched) {
  const auto& m = *messages[0];
  tx.set_cause(cause_of(m));
  std::optional<failed_attempt> failed;
  bool stopped = false;
  read_beside_ = false;
  const auto begun = db_.env().now();
  watched.handler_begins();
  try {
    std::optional<sql::handler_scope> scope;
    if (!what.alone || db_.speaks() == dialect::sqlite) scope.emplace(db_, &read_beside_);
    with_fault_points(db_.env(), "consumer.handler",
                      [&] { what.all ? what.all(messages, tx) : what.each(m, tx); });
    transaction_parts::end(tx);
  } catch (const error& e) {
    failed = failures_.describe(e, m);
    stopped = watched.is_stop(e);
  } catch (const std::exception& e) {
    failed = failures_.describe(e, m);
  } catch (...) {
    failed = failed_attempt{db_.env().now(), failure_class::poison,
                            "the handler threw something that is not a std::exception"};
  }
  times_.add(db_.env().now() - begun);
  if (watched.handler_ends())
    return failed_attempt{db_.env().now(), failure_class::poison,
                          "the handler took longer than handler_timeout"};
  if (stopped) throw error(errc::cancelled, failed->error);
  return failed;
}

}  // namespace settle::consume
