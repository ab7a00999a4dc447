// The steps of an attempt at a batch: what is unfit, whose partition it is, the handlers, what is written
// down.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "consume/engine.hpp"
#include "consume/handler_run.hpp"
#include "consume/seams.hpp"
#include "consume/splitter.hpp"
#include "dead_letter/shared.hpp"
#include "retry/crashes.hpp"
#include "settle/driver/database.hpp"
#include "settle/metrics.hpp"
#include "sql/handler_scope.hpp"

namespace settle::inline v0 {
namespace {

// Of ids and names: what the indexes of every database can hold, several of them together.
constexpr std::size_t text_bytes_max = 1024;

bool is_storable(std::string_view text) {
  return text.size() <= text_bytes_max && is_utf8(text) && text.find('\0') == std::string_view::npos;
}

bool has_storable_names(const message& m) {
  return is_storable(m.id) && is_storable(m.key) && is_storable(m.type) && is_storable(m.topic);
}

void make_storable(consume::work& one) {
  auto& m = one.content.content;
  for (auto* text : {&m.id, &m.key, &m.type, &m.topic})
    *text = storable_text(*text, std::min(3 * text->size(), text_bytes_max));
  one.unfit = true;
}

constexpr int batches_marked = 64;    // after one with a failure
constexpr int going_back_within = 4;  // times batch_time: others wait for the transaction

// What stands in for the id of a message that has none, or none that can be stored: where it was delivered
// from.
std::string place_key(const delivery& of, std::string_view partition) {
  return "no id: " + std::string(partition) + "/" + of.at.text();
}

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

// The splitter's side of the engine.
class consumer::engine::attempts final : public consume::attempt_host {
 public:
  attempts(engine& home, const std::stop_token& cancel) : home_(home), cancel_(cancel) {}

  std::optional<failure> attempt(batch messages) override { return home_.attempt(messages, cancel_); }
  bool may_try() const override { return home_.pauses_.may_try(); }
  bool is_done(const work& one) const override { return home_.is_done(one); }
  void failed_alone(work& one, const failed_attempt& how) override { home_.failures_.failed_alone(one, how); }
  void keys_held_elsewhere() override { home_.end_stopped_holders(); }

 private:
  engine& home_;
  const std::stop_token& cancel_;
};

void consumer::engine::apply(batch messages, const std::stop_token& cancel) {
  attempts host(*this, cancel);
  consume::splitter(host).apply(messages);
}

// Of this run: what became of it has committed.
bool consumer::engine::is_done(const work& one) const {
  return std::ranges::find(done_, &one) != done_.end();
}

// A handler of theirs would have been stopped by now.
void consumer::engine::end_stopped_holders() {
  const auto too_long = options_.handler_timeout + options_.takeover_wait;
  for (auto& [key, since] : held_elsewhere_) {
    if (env().now() - since < too_long) continue;
    since = env().now();
    parking_.end_stopped_holder(db_, key.first, key.second, too_long);
  }
}

consumer::engine::dedup_keys consumer::engine::dedup_keys_of(batch messages) const {
  dedup_keys keys;
  keys.all.reserve(messages.size());
  const bool own_id = options_.key == dedup_key::message_id;
  const auto keep = [&](std::string made) -> std::string_view {
    keys.made.reserve(messages.size());  // so that the views of them stay valid
    return keys.made.emplace_back(std::move(made));
  };
  for (const auto* one : messages) {
    const auto& m = one->what();
    if (one->unfit || (own_id ? m.id : m.key).empty())
      keys.all.push_back(keep(place_key(one->content, fences_.log_of(*one))));
    else
      keys.all.push_back(own_id ? std::string_view(m.id) : keep(m.key + "-" + m.type));
  }
  return keys;
}

std::string_view consumer::engine::address_of(const message& m) const {
  return consume::addressed_to(m, options_.name);
}

// A message that nobody can tell from another one, or that no database can hold, fails before it is claimed.
std::optional<consume::failure> consumer::engine::find_unfit(batch messages) {
  const bool own_id = options_.key == dedup_key::message_id;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& one = *messages[i];
    const auto& m = one.what();
    if (one.charge || one.parked || !address_of(m).empty() || handlers_.of(m) == nullptr) continue;
    if ((own_id ? m.id : m.key).empty())
      return failure{
          i, failures_.describe(
                 error(errc::message_id_missing, "a message of type " + m.type + " on " + m.topic), m)};
    if (!one.unfit && !has_storable_names(m)) make_storable(*messages[i]);
    if (one.unfit)
      return failure{
          i, failures_.describe(error(errc::decode_failed,
                                      "its id, topic, type or key is not UTF-8 text of at most 1,024 bytes"),
                                m)};
  }
  return std::nullopt;
}

// One that takes over from an owner that has not ended its work is careful with the first messages: one of
// them may have killed it.
void consumer::engine::take_over(const consume::fence_keeper::partitions& held,
                                 const std::stop_token& cancel) {
  const auto be_careful = [&](std::uint32_t partition) {
    caution_.begin(partition, options_.batch_max);
    report_.careful_with(fences_.name_of(partition), options_.batch_max);
  };
  fences_.take_over(db_, held, cancel, be_careful);
}

// A replay is not parked: its letter remembers over how many processes it was begun that had taken over from
// one that did not end its work. It runs alone, so it is not among others.
void consumer::engine::note_suspect(work& one, const std::stop_token& cancel) {
  const bool suspect = caution_.lasts(one.content.tag.partition) || one.content.redelivered;
  if (!suspect || one.noted || one.charge || address_of(one.what()) != options_.name) return;
  auto tx = db_.begin(cancel);
  const auto begun = note_replay_start(tx, one.what());
  tx.commit("consumer.note_replay");
  one.noted = true;
  if (retry::has_crashed_enough(begun)) one.charge = retry::charge_for_crashes(begun, env().now());
}

consumer::engine::claimed_batch consumer::engine::take_parked(transaction& tx, batch messages) {
  claimed_batch made;
  for (const bool ours : parking_.take(tx, messages))
    made.what.push_back(ours ? verdict::run : verdict::gone);
  return made;
}

// A batch whose handlers run in this transaction.
class consumer::engine::open_batch final : public consume::handler_host {
 public:
  open_batch(engine& home, owned_transaction& tx, batch messages, claimed_batch& of,
             consume::handler_watch::attempt& watched)
      : home_(home), tx_(tx), messages_(messages), of_(of), watched_(watched) {
    transaction_parts::end(tx_);  // the claims
    marked_ =
        home_.mark_claims_ > 0 && messages.size() > 1 && !messages[0]->parked && transaction_parts::mark(tx_);
    if (home_.mark_claims_ > 0) --home_.mark_claims_;
    enough_ = home_.env().now() + going_back_within * home_.options_.batch_time;
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
    return home_.run(*handler, all_, tx_, watched_);
  }

  // A handler that fails before it has heard anything of the database has failed alone, whoever shares its
  // transaction: nothing of theirs can have caused it. If what it has asked for was not even sent, there is
  // nothing of it to undo. What was parked runs nearly alone anyway, and what becomes of it is written
  // elsewhere.
  bool charge_at_once(std::size_t at, const failed_attempt& how) override {
    auto& one = *messages_[at];
    if (watched_.token().stop_requested() || how.why == failure_class::outage || one.parked) return false;
    if (home_.read_beside_) return false;
    if (!consume::take_back_part(tx_)) return false;
    home_.failures_.failed_alone(one, how);
    return true;
  }

  // Not where handlers are slow, because others wait for the transaction.
  bool go_back() override {
    begin();
    return marked_ && home_.env().now() <= enough_ && transaction_parts::drop_all(tx_);
  }

  void note_handler_time() const {
    if (ran_ == 0) return;
    const auto each = static_cast<double>((home_.env().now() - started_).count()) / static_cast<double>(ran_);
    home_.handler_us_ = home_.handler_us_ == 0 ? each : 0.8 * home_.handler_us_ + 0.2 * each;
  }

 private:
  void begin() {
    started_ = home_.env().now();
    ran_ = 0;
  }
  const message& content_of(std::size_t at) const {
    return of_.what[at] == verdict::replay ? of_.letters.at(at).what : messages_[at]->what();
  }
  const consume::handler* handler_of(std::size_t at) const { return home_.handlers_.of(content_of(at)); }

  engine& home_;
  owned_transaction& tx_;
  batch messages_;
  claimed_batch& of_;
  consume::handler_watch::attempt& watched_;
  bool marked_ = false;  // all handlers can be taken back
  timestamp enough_{};   // no more of that after this
  timestamp started_{};  // this pass
  std::int64_t ran_ = 0;
  std::vector<const message*> all_;
};

// Where the claims can be kept, and failures are likely, a message that fails takes only itself out of its
// batch: the others run once more, in the same transaction.
std::optional<consume::failure> consumer::engine::run_handlers(owned_transaction& tx, batch messages,
                                                               claimed_batch& of,
                                                               consume::handler_watch::attempt& watched) {
  open_batch opened(*this, tx, messages, of, watched);
  auto why = consume::run_handlers(messages, of, opened, judging_now());
  if (messages.size() > 1 && (!of.failed.empty() || (why && why->at))) mark_claims_ = batches_marked;
  env().counters->add_times("settle_consumer_handler_seconds", {{"consumer", options_.name}},
                            std::exchange(handler_times_, {}));
  if (why) return why;
  opened.note_handler_time();
  give_claims_back(tx, messages, of);
  return std::nullopt;
}

std::optional<failed_attempt> consumer::engine::run(const consume::handler& what,
                                                    std::span<const message* const> messages, transaction& tx,
                                                    consume::handler_watch::attempt& watched) {
  const auto& m = *messages[0];
  tx.set_cause(cause_of(m));
  std::optional<failed_attempt> failed;
  bool stopped = false;
  read_beside_ = false;
  const auto begun = env().now();
  watched.handler_begins();
  try {
    std::optional<sql::handler_scope> scope;
    if (!what.alone || db_.speaks() == dialect::sqlite) scope.emplace(db_, &read_beside_);
    with_fault_points(env(), "consumer.handler",
                      [&] { what.all ? what.all(messages, tx) : what.each(m, tx); });
    transaction_parts::end(tx);
  } catch (const error& e) {
    failed = failures_.describe(e, m);
    stopped = watched.is_stop(e);
  } catch (const std::exception& e) {
    failed = failures_.describe(e, m);
  } catch (...) {
    failed = failed_attempt{env().now(), failure_class::poison,
                            "the handler threw something that is not a std::exception"};
  }
  handler_times_.add(env().now() - begun);
  if (watched.handler_ends())
    return failed_attempt{env().now(), failure_class::poison, "the handler took longer than handler_timeout"};
  if (stopped) throw error(errc::cancelled, failed->error);
  return failed;
}

// What does not run is written, in the same transaction: where it waits, or that it was given up. And what
// was claimed together; not before, because a batch that fails would have done it for nothing.
void consumer::engine::write_down(transaction& tx, batch messages, claimed_batch& of) {
  if (!of.fresh.empty()) retention_.note(tx, of.fresh, std::move(of.fresh_keys));
  std::vector<work*> ran;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    const auto& m = one.what();
    const auto log = fences_.log_of(one);
    switch (of.what[i]) {
      case verdict::run:
        if (one.parked) ran.push_back(&one);
        break;
      case verdict::charge:
        charges_.write(tx, one, of.keys.all[i]);
        break;
      case verdict::behind:
        parking_.add(tx, {one, log, of.keys.all[i]});
        break;
      case verdict::cautious:
        parking_.add(tx, {one, log, of.keys.all[i], 0, 1});
        parking_.hold_key(tx, m, of.keys.all[i], env().now());
        schedule_.expect(env().now());
        break;
      case verdict::beyond_horizon:
        charges_.give_up_late_copy(tx, one);
        break;
      case verdict::replay:
        if (!of.letters.at(i).blocks_key) break;
        parking_.go_on(tx, of.letters.at(i).what, "", env().now());
        schedule_.expect(env().now());
        break;
      case verdict::duplicate:
      case verdict::ignore:
      case verdict::others_replay:
      case verdict::gone:
      case verdict::left_out:
        break;
    }
  }
  parking_.go_on(tx, ran, env().now());
}

void consumer::engine::succeeded(batch messages, const claimed_batch& of) {
  std::map<verdict, std::int64_t> counted;
  time_counts delays;
  const auto now = env().now();
  std::int64_t charged_away = 0;  // to a dead letter, new or old
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto what = of.what[i];
    if (what == verdict::left_out) continue;
    ++counted[what];
    if (const auto stored = messages[i]->content.stored_at; what == verdict::run && stored)
      delays.add(now - *stored);
    const bool replay = !address_of(messages[i]->what()).empty();
    if (what == verdict::charge && (replay || messages[i]->given_up())) ++charged_away;
    if (what == verdict::cautious) caution_.spend(messages[i]->content.tag.partition);
    if (what != verdict::run && what != verdict::ignore) report_.skipped(messages[i]->what(), what);
    if (what != verdict::gone) done_.push_back(messages[i]);
  }
  if (counted[verdict::run] + counted[verdict::replay] > 0) pauses_.handlers_succeeded();
  report_.applied(counted, charged_away);
  report_.given_up(charges_.take_given_up());
  env().counters->add_times("settle_consumer_apply_delay_seconds", {{"consumer", options_.name}}, delays);
}

}  // namespace settle::inline v0
