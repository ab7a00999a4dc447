// Claims as rows of a database. One transaction serves all calls of a batch: statements that change something
// go first, in one round trip; what they did not find is looked at in a second one, and judged; claims that
// come again get their leases in a third one. On PostgreSQL
// one statement serves all claims and one all completions, because most of what a statement costs there is
// not its row.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "base/doubt.hpp"
#include "base/encoding.hpp"
#include "base/zoo.hpp"
#include "once/claim_about.hpp"
#include "once/claim_calls.hpp"
#include "once/claim_rules.hpp"
#include "queries/once.hpp"
#include "queries/sql.hpp"
#include "settle/error.hpp"
#include "sql/columns.hpp"

namespace settle::keys {
namespace {

constexpr int commits_max = 3;  // of one batch, each but the last with an unknown outcome
constexpr int looks_max = 5;    // for a key that is claimed, released or taken over all the time

// Null where the server's clock decides.
value clock_of(const database& db) {
  return db.speaks() == dialect::sqlite ? value(db.env().now()) : value();
}

std::optional<known_claim> read_known(const result& rows) {
  if (rows.empty()) return std::nullopt;
  namespace columns = queries::once::read_claim_columns;
  constexpr stored_columns answer{columns::run,     columns::fingerprint, columns::status,
                                  columns::headers, columns::body,        columns::response_hash};
  const auto row = rows[0];
  known_claim known{row[columns::run].text(), row[columns::epoch].integer(),
                    row[columns::fingerprint].bytes(), duration(row[columns::lease_left].integer())};
  if (!row[columns::status].is_null()) known.what = read_stored(rows, answer)->what;
  return known;
}

// PostgreSQL: the number of the lock that whoever draws an epoch of this key holds. Not the one of a request
// that is a transaction: that one is somebody else's.
std::int64_t turn_of(const std::string& identity) {
  constexpr std::int64_t of_claims = 0x636c61696d73;  // "claims"
  return lock_number(identity) ^ of_claims;
}

struct taking_over {
  std::string_view identity, run;
  duration lease;
  std::int64_t seen_epoch;
  timestamp expires;
  std::string about = {};  // empty: it stays what it was
};

// Its new epoch; nothing if the claim is not as it was seen any more.
std::optional<std::int64_t> take_over(database& db, transaction& tx, const taking_over& how) {
  parameters row{blob{std::string(how.identity)},
                 how.run,
                 how.lease.count(),
                 clock_of(db),
                 how.seen_epoch,
                 how.expires,
                 how.about.empty() ? value() : value(how.about)};
  if (db.speaks() == dialect::postgres) row.emplace_back(turn_of(std::string(how.identity)));
  const auto taken = tx.execute(statement{queries::once::take_over_claim, std::move(row)});
  if (taken.empty()) return std::nullopt;
  return taken[0][queries::once::take_over_claim_columns::epoch].integer();
}

// The calls of a batch, on their way through the database.
class batch {
 public:
  batch(database& db, std::span<const claim_call> calls)
      : db_(db), calls_(calls), opened_(calls.size()), answers_(calls.size()) {
    for (std::size_t n = 0; n < calls.size(); ++n) {
      opened_[n].identity = identity_of(who_of(calls[n]));
      opened_[n].run = std::visit([this](const auto& one) { return run_of(one); }, calls[n]);
      if (const auto* claim = std::get_if<claim_request>(&calls[n]))
        opened_[n].fingerprint = fingerprint_of(claim->fingerprint);
    }
    in_order_ = db.speaks() == dialect::sqlite || kinds_that_end() > 1;
  }

  // What is in doubt is repeated: every call has its own run, and finds what an earlier attempt has done.
  std::vector<claim_answer> run() {
    if (db_.speaks() == dialect::postgres)
      run_in_one_exchange();
    else
      look_into(all_in_order(), false);
    std::vector<claim_answer> all;
    all.reserve(answers_.size());
    for (auto& one : answers_) all.push_back(std::move(*one));
    return all;
  }

 private:
  using numbers = std::vector<std::size_t>;

  // Most calls change what they are about, and are done with the commit, which has gone with them. The others
  // are looked into afterwards. If that fails, those that are done are told so: nobody else knows whose they
  // are. After a commit in doubt the others may be done as well, and stay in doubt. One whose record is
  // damaged fails alone.
  void run_in_one_exchange() {
    bool in_doubt = false;
    const auto unchanged = until_known(commits_max, [&](bool again) {
      in_doubt = again;
      now_ = db_.env().now();
      auto tx = db_.begin();
      if (again) tx.post(queries::sql::confirm_replicated);
      return change_all(all_in_order(),
                        [&](std::span<const repeated> all) { return tx.commit_with(all, "claims.commit"); });
    });
    try {
      look_into(unchanged, true);
    } catch (const error& e) {
      const bool each_alone = !e.retryable() && unchanged.size() > 1;
      if (!each_alone && unchanged.size() == calls_.size()) throw failure(e, in_doubt);
      for (const auto n : unchanged) {
        if (each_alone)
          look_into_alone(n, in_doubt);
        else
          answers_[n] = claim_failed{failure(e, in_doubt)};
      }
    }
  }

  void look_into_alone(std::size_t n, bool in_doubt) try { look_into({n}, true); } catch (const error& e) {
    answers_[n] = claim_failed{failure(e, in_doubt)};
  }

  // A new one for each caller: they are in other threads, and copies would share their text.
  static error failure(const error& e, bool in_doubt) {
    return in_doubt || e.outcome_unknown() ? error::with_unknown_outcome(e.code(), e.what())
                                           : error(e.code(), e.what());
  }

  void look_into(const numbers& open, bool tried) {
    if (open.empty()) return;
    until_known(commits_max, [&](bool again) {
      now_ = db_.env().now();
      while (!try_all(open, tried, again)) {
        in_order_ = true;
        tried = false;
      }
    });
  }

  // `tried`: they have changed nothing a moment ago. False: it would have to lock rows out of order, and was
  // rolled back.
  bool try_all(numbers open, bool tried, bool again) {
    auto tx = db_.begin();
    for (int looks = 0; !open.empty(); ++looks) {
      if (looks == looks_max)
        throw error(errc::store_busy, "an idempotency key changes hands faster than it can be asked for");
      const bool locked = in_order_ && !tried;
      const auto changing = tried ? 0 : kinds_that_end();
      waits_ = true;
      const auto unchanged =
          tried ? open : change_all(open, [&](std::span<const repeated> all) { return tx.execute_all(all); });
      const auto known = look_at(tx, unchanged);
      if (!locked && changing + kinds_that_follow(unchanged, known) > 1) return false;
      open = judge_all(tx, unchanged, known);
      if (!locked && !open.empty()) return false;
      tried = false;
    }
    if (again) tx.post(queries::sql::confirm_replicated);
    tx.commit("claims.commit");
    return true;
  }

  // Of calls that change a row: completions, renewals, releases.
  std::ptrdiff_t kinds_that_end() const {
    std::array<bool, std::variant_size_v<claim_call>> there{};
    for (const auto& one : calls_) there[one.index()] = !std::holds_alternative<claim_request>(one);
    return std::ranges::count(there, true);
  }

  std::string run_of(const claim_request& of) const { return of.run.value_or(db_.env().ids->next()).text(); }
  std::string run_of(const auto& of) const { return of.run.text(); }

  // Claims first, each kind by identity: two batches must not wait for each other. Who inserts holds nothing
  // yet that others wait for, but those who insert the same. Who changes rows in more than one way locks all
  // of them first (lock_claims), in that order too.
  numbers all_in_order() const {
    numbers all(calls_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::ranges::stable_sort(all, {}, [&](std::size_t n) {
      return std::pair(calls_[n].index(), std::string_view(opened_[n].identity));
    });
    return all;
  }

  parameters row_of(std::size_t n, const claim_request& of) const {
    parameters row{blob{opened_[n].identity},    of.who.service,   opened_[n].run,
                   blob{opened_[n].fingerprint}, of.lease.count(), expiry(now_, of.keep),
                   stored_about(of.about),       clock_of(db_)};
    if (db_.speaks() == dialect::postgres) {
      row.emplace_back(turn_of(opened_[n].identity));
      row.push_back(waits_ ? value(std::int64_t{1}) : value());
    }
    return row;
  }
  parameters row_of(std::size_t n, const claim_completion& of) const {
    parameters row{blob{opened_[n].identity}, opened_[n].run, expiry(now_, of.keep)};
    append_answer(row, of.what);
    return row;
  }
  parameters row_of(std::size_t n, const claim_renewal& of) const {
    return {blob{opened_[n].identity}, opened_[n].run, of.lease.count(), clock_of(db_)};
  }
  parameters row_of(std::size_t n, const claim_release&) const {
    return {blob{opened_[n].identity}, opened_[n].run};
  }

  // A statement with its rows; each row stands for as many of the calls.
  struct change {
    query text;
    std::vector<parameters> rows = {};
    numbers calls = {};
  };

  std::vector<change> changes_for(const numbers& open) const {
    using namespace queries::once;
    const bool joins = db_.speaks() == dialect::postgres;
    std::vector<change> all = {{joins ? claim_keys : claim_key},
                               {joins ? complete_claims : complete_claim},
                               {renew_claim},
                               {release_claim}};
    for (const auto n : open) {
      auto& of = all[calls_[n].index()];
      of.calls.push_back(n);
      of.rows.push_back(std::visit([&](const auto& one) { return row_of(n, one); }, calls_[n]));
    }
    if (joins)
      for (auto* of : {&all[0], &all[1]})
        if (!of->rows.empty()) of->rows = {columns_of(of->rows)};
    if (joins && in_order_) all.insert(all.begin() + 1, {lock_claims, {identities_of(open)}});
    if (joins && (in_order_ || !all[1].rows.empty()))
      all.insert(all.begin() + 1, {find_by_identity, {parameters{}}});
    return all;
  }

  parameters identities_of(const numbers& open) const {
    std::vector<parameters> rows;
    for (const auto n : open) rows.push_back({blob{opened_[n].identity}});
    return columns_of(rows);
  }

  // Gives those that have changed nothing.
  numbers change_all(const numbers& open,
                     const std::function<std::vector<result>(std::span<const repeated>)>& execute) {
    const auto changes = changes_for(open);
    std::vector<repeated> statements;
    for (const auto& one : changes) statements.push_back({one.text, one.rows});
    const auto results = execute(statements);
    numbers unchanged;
    auto next = results.begin();
    for (const auto& [text, rows, calls] : changes) {
      for (std::size_t row = 0; row < rows.size(); ++row, ++next) {
        const auto of_row = calls.size() / rows.size();
        const auto served = std::span(calls).subspan(row * of_row, of_row);
        const auto changed = changed_by(*next, served);
        for (std::size_t i = 0; i < served.size(); ++i) {
          if (changed[i])
            answers_[served[i]] = answer_of_change(served[i], *changed[i]);
          else
            unchanged.push_back(served[i]);
        }
      }
    }
    return unchanged;
  }

  // Which of the calls that one statement has served, a claim with its epoch. Inserts tell their rows, in the
  // order of the calls: the run says whose it is, if two want the same key. Completions that were not all
  // tell their places in the arrays.
  std::vector<std::optional<std::int64_t>> changed_by(const result& done,
                                                      std::span<const std::size_t> served) const {
    std::vector<std::optional<std::int64_t>> changed(served.size());
    if (served.empty()) return changed;
    if (std::holds_alternative<claim_request>(calls_[served[0]])) {
      std::size_t told = 0;
      for (std::size_t i = 0; i < served.size() && told < done.size(); ++i) {
        namespace columns = queries::once::claim_key_columns;
        static_assert(columns::all == queries::once::claim_keys_columns::all);
        const auto& of = opened_[served[i]];
        const auto row = done[told];
        if (row[columns::identity].bytes() != of.identity || row[columns::run].text() != of.run) continue;
        changed[i] = row[columns::epoch].integer();
        ++told;
      }
    } else if (done.affected() == static_cast<std::int64_t>(served.size())) {
      std::ranges::fill(changed, 0);
    } else {
      for (std::size_t row = 0; row < done.size(); ++row)
        changed.at(static_cast<std::size_t>(
            done[row][queries::once::complete_claims_columns::place].integer() - 1)) = 0;
    }
    return changed;
  }

  claim_answer answer_of_change(std::size_t n, std::int64_t epoch) const {
    const auto* claim = std::get_if<claim_request>(&calls_[n]);
    if (claim == nullptr) return claim_ended::done;
    if (zoo::has(zoo::bug::epoch_by_the_clock)) epoch = now_.time_since_epoch().count();
    return held(n, claim_outcome::claimed, epoch);
  }

  claim_result held(std::size_t n, claim_outcome as, std::int64_t epoch) const {
    return {as, {uuid::parse(opened_[n].run).value(), epoch}, std::get<claim_request>(calls_[n]).lease};
  }

  std::vector<std::optional<known_claim>> look_at(transaction& tx, const numbers& unchanged) const {
    if (unchanged.empty()) return {};
    std::vector<parameters> rows;
    for (const auto n : unchanged) rows.push_back({blob{opened_[n].identity}, clock_of(db_)});
    std::vector<repeated> looks;
    for (const auto& row : rows) looks.push_back({queries::once::read_claim, {&row, 1}});
    std::vector<std::optional<known_claim>> known;
    for (const auto& one : tx.execute_all(looks)) known.push_back(read_known(one));
    return known;
  }

  // Of claims that change a row: those that come again, and those that take over.
  int kinds_that_follow(const numbers& unchanged,
                        const std::vector<std::optional<known_claim>>& known) const {
    bool extends = false, takes_over = false;
    for (std::size_t i = 0; i < unchanged.size(); ++i) {
      const auto* claim = std::get_if<claim_request>(&calls_[unchanged[i]]);
      if (claim == nullptr || !known[i]) continue;
      const auto verdict = judge(*known[i], opened_[unchanged[i]], policy_of(*claim));
      extends = extends || must_extend(*known[i], verdict, *claim);
      takes_over = takes_over || verdict == verdict::take_over;
    }
    return (extends ? 1 : 0) + (takes_over ? 1 : 0);
  }

  // Gives those that have to be tried again: what stood in their way has gone meanwhile.
  numbers judge_all(transaction& tx, const numbers& unchanged,
                    const std::vector<std::optional<known_claim>>& known) {
    numbers again, returned;
    for (std::size_t i = 0; i < unchanged.size(); ++i) {
      const auto n = unchanged[i];
      if (const auto* claim = std::get_if<claim_request>(&calls_[n]))
        answers_[n] = known[i] ? judge_claim(tx, n, *claim, *known[i], returned) : std::nullopt;
      else
        answers_[n] = judge_end(n, known[i]);
      if (!answers_[n]) again.push_back(n);
    }
    extend_all(tx, returned, again);
    return again;
  }

  // Claims that have come again have the lease they are told. One that was lost since it was looked at is
  // tried again.
  void extend_all(transaction& tx, const numbers& returned, numbers& again) {
    if (returned.empty()) return;
    std::vector<parameters> rows;
    for (const auto n : returned)
      rows.push_back({blob{opened_[n].identity}, opened_[n].run,
                      std::get<claim_request>(calls_[n]).lease.count(), clock_of(db_)});
    const auto extended = tx.execute_many(queries::once::extend_claim, rows);
    for (std::size_t i = 0; i < returned.size(); ++i)
      if (extended[i] == 0) again.push_back(returned[i]);
  }

  static when_unknown policy_of(const claim_request& asked) {
    return zoo::has(zoo::bug::lease_frees_the_key) ? when_unknown::reissue : asked.on_unknown;
  }

  std::optional<claim_answer> judge_claim(transaction& tx, std::size_t n, const claim_request& asked,
                                          const known_claim& known, numbers& returned) {
    const auto policy = policy_of(asked);
    const auto verdict = judge(known, opened_[n], policy);
    if (must_extend(known, verdict, asked)) returned.push_back(n);
    if (verdict != verdict::take_over) return told(known, verdict, asked);
    const auto epoch = take_over(db_, tx,
                                 {.identity = opened_[n].identity,
                                  .run = opened_[n].run,
                                  .lease = asked.lease,
                                  .seen_epoch = known.epoch,
                                  .expires = expiry(now_, asked.keep),
                                  .about = stored_about(asked.about)});
    if (!epoch) return std::nullopt;
    return held(n, outcome_of_take_over(policy), *epoch);
  }

  // A completion is there already if this call comes again; a release has left nothing.
  claim_answer judge_end(std::size_t n, const std::optional<known_claim>& known) const {
    if (std::holds_alternative<claim_release>(calls_[n]))
      return known ? claim_ended::lost : claim_ended::done;
    const auto* completion = std::get_if<claim_completion>(&calls_[n]);
    if (completion == nullptr || !known || !known->what || known->run != opened_[n].run)
      return claim_ended::lost;
    return told_again(*known, completion->what);
  }

  database& db_;
  std::span<const claim_call> calls_;
  std::vector<opened_claim> opened_;
  std::vector<std::optional<claim_answer>> answers_;
  timestamp now_{};
  bool in_order_ = false;  // what it changes is locked first
  bool waits_ = false;     // for the turn of a key that somebody else is claiming
};

// What an operator has decided about a claim.
struct decision {
  database& db;
  blob identity;
  std::int64_t seen_epoch;
  const std::optional<answer>& what;  // none: the key is free again
  std::string run;

  // Taken over first, so that its owner, if it comes back, is fenced off; and only if it has not come back.
  claim_ended pass(bool again) const {
    const auto now = db.env().now();
    auto tx = db.begin();
    const auto expires = expiry(now, std::chrono::hours(24));
    const auto taken = take_over(db, tx,
                                 {.identity = identity.bytes,
                                  .run = run,
                                  .lease = duration(1),
                                  .seen_epoch = seen_epoch,
                                  .expires = expires});
    if (!taken) return again && is_done(tx) ? claim_ended::done : claim_ended::lost;
    if (what) {
      parameters row{identity, run, expires};
      append_answer(row, *what);
      tx.execute(statement{queries::once::complete_claim, std::move(row)});
    } else {
      tx.execute(queries::once::release_claim, {identity, run});
    }
    tx.commit("claims.resolve");
    return claim_ended::done;
  }

 private:
  bool is_done(transaction& tx) const {
    const auto known = read_known(tx.execute(queries::once::read_claim, {identity, clock_of(db)}));
    return what ? known && known->run == run : !known;
  }
};

class sql_claims final : public batched_claims {
 public:
  explicit sql_claims(database& db) : db_(db) {}

  const environment& env() const override { return db_.env(); }

 private:
  std::vector<claim_answer> run_checked(std::span<const claim_call> calls) override {
    if (calls.empty()) return {};
    return batch(db_, calls).run();
  }

  database& db_;
};

}  // namespace
}  // namespace settle::keys

namespace settle::inline v0 {

std::unique_ptr<claims> open_claims(database& db) { return std::make_unique<keys::sql_claims>(db); }

std::vector<unknown_claim> unknown_claims(database& db, std::int64_t at_most) {
  const auto rows =
      db.read().commit_with({queries::once::list_unknown_claims, {keys::clock_of(db), at_most}}, "");
  std::vector<unknown_claim> all;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    namespace columns = queries::once::list_unknown_claims_columns;
    const auto row = rows[n];
    all.push_back({.service = row[columns::service].text(),
                   .identity = to_hex(row[columns::identity].bytes()),
                   .token = {uuid::parse(row[columns::run].text()).value(), row[columns::epoch].integer()},
                   .claimed_at = row[columns::claimed_at].time(),
                   .lease_until = row[columns::lease_until].time()});
    keys::read_about(row[columns::about].text(), all.back());
  }
  return all;
}

claim_ended resolve_claim(database& db, const unknown_claim& which, const std::optional<answer>& what) {
  if (what) keys::check_answer(*what, claims::answer_bytes_max, "claims::answer_bytes_max");
  const auto bytes = from_hex(which.identity);
  if (!bytes) throw error(errc::invalid_argument, "the identity of a claim is hexadecimal");
  const keys::decision made{db, blob{*bytes}, which.token.epoch, what, db.env().ids->next().text()};
  return until_known(keys::commits_max, [&](bool again) { return made.pass(again); });
}

}  // namespace settle::inline v0
