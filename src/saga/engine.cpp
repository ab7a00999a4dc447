#include "saga/engine.hpp"

#include <algorithm>

#include "base/derived_id.hpp"
#include "base/if_possible.hpp"
#include "base/text.hpp"
#include "queries/saga.hpp"
#include "saga/mailbox.hpp"
#include "saga/seams.hpp"
#include "saga/shared.hpp"
#include "saga/store.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration sweep_every = std::chrono::minutes(1);
constexpr std::int64_t sweep_slice = 1000;
constexpr std::size_t name_bytes_max = 100;

void check(const saga_host_options& options) {
  check_name(options.name, {"saga host name", name_bytes_max});
  if (options.batch_max < 1 || options.batch_max > 1000)
    throw error(errc::invalid_argument, "saga_host_options.batch_max must be 1 to 1,000");
  if (options.steps_max > 1000)
    throw error(errc::invalid_argument, "saga_host_options.steps_max must be at most 1,000");
  if (options.call_threads < 0 || options.call_threads > 1000)
    throw error(errc::invalid_argument, "saga_host_options.call_threads must be 0 to 1,000");
  if (options.batch_time <= duration::zero() || options.lease_ttl < std::chrono::milliseconds(100) ||
      options.takeover_wait < std::chrono::milliseconds(1) || options.idle_poll <= duration::zero() ||
      options.keep < duration::zero())
    throw error(errc::invalid_argument,
                "saga_host_options: times must be positive, and the lease at least 100 ms");
}

// SQLite takes a step back for nearly nothing.
sagas::care least_care(const database& db) {
  return db.speaks() == dialect::sqlite ? sagas::care::careful : sagas::care::plain;
}

}  // namespace

saga_host::engine::engine(database& db, broker* from, const saga_host_options& options)
    : db_(db),
      options_(options),
      report_(db.env(), options.name),
      caution_(least_care(db)),
      mail_(options.name),
      calls_(options.call_threads, [this] { bell_.ring(); }) {
  check(options);
  if (from != nullptr) events_ = std::make_unique<sagas::event_intake>(db, *from, options.name);
}

void saga_host::engine::on(std::string_view topic, std::string_view type, sagas::key_reader key_of) {
  if (std::ranges::any_of(replies_, [&](const auto& one) { return one.second == type; }) ||
      !keys_.emplace(type, key_of).second)
    throw error(errc::invalid_argument,
                "saga host " + options_.name + " listens to " + std::string(type) + " already");
  if (events_) events_->on(topic, type, std::move(key_of));
}

bool saga_host::engine::deliver(transaction& tx, std::string_view type, std::string_view event_id,
                                std::string payload) const {
  const auto known = keys_.find(type);
  if (known == keys_.end())
    throw error(errc::invalid_argument,
                "saga host " + options_.name + " does not listen to " + std::string(type));
  check_name(event_id, {"id of an event", event_limits::name_bytes_max});
  auto key = known->second(payload);
  const sagas::arrived_event one{std::string(type), std::move(key), std::string(event_id),
                                 std::move(payload)};
  return mail_.deliver(tx, {&one, 1}) == 1;
}

// A broker that is away holds up nothing but timeouts; its consumer says so in the log.
bool saga_host::engine::run_events(const std::stop_token& cancel) {
  if (!events_ || events_->is_empty() || events_loop_) return false;
  try {
    return events_->run_once(cancel);
  } catch (const error& e) {
    if (e.code() == errc::cancelled) throw;
    return false;
  }
}

void saga_host::engine::add(std::shared_ptr<const detail::saga_definition> what) {
  const auto kind = sagas::kind_number(options_.name, what->type, what->version);
  const auto name = options_.name + "." + what->type + "." + std::to_string(what->version);
  if (kinds_.contains(kind)) throw error(errc::invalid_argument, "saga " + name + " is added twice");
  for (const auto& step : what->steps)
    for (const auto& reply : step->replies) listen_to_replies(*what, reply);
  kinds_.emplace(kind, known_kind{std::move(what),
                                  {db_,
                                   {.name = name,
                                    .kind = kind,
                                    .lease_ttl = options_.lease_ttl,
                                    .takeover_wait = options_.takeover_wait}}});
}

void saga_host::engine::listen_to_replies(const detail::saga_definition& of,
                                          const detail::reply_kind& reply) {
  if (!events_)
    throw error(errc::invalid_argument, "saga " + of.type + " sends commands, and its host has no broker");
  if (keys_.contains(reply.type))
    throw error(errc::invalid_argument, "saga host " + options_.name + " listens to " + reply.type +
                                            " already, which answers a command of saga " + of.type);
  if (replies_.emplace(reply.topic, reply.type).second) events_->on_reply(reply.topic, reply.type);
}

void saga_host::engine::add_kinds(const std::stop_token& cancel) {
  {
    const std::scoped_lock lock(kinds_mutex_);
    if (kinds_stored_) return;
  }
  if (kinds_.empty()) throw error(errc::invalid_argument, "saga host " + options_.name + " knows no sagas");
  auto tx = db_.begin(cancel);
  for (const auto& [kind, known] : kinds_)
    tx.post(queries::saga::add_kind, {kind, options_.name, known.what->type, known.what->version});
  tx.commit("saga.add_kinds");
  const std::scoped_lock lock(kinds_mutex_);
  kinds_stored_ = true;
}

std::vector<saga_id> saga_host::engine::start(transaction& tx, const detail::saga_definition& what,
                                              std::span<const new_saga<std::string>> all) {
  const auto kind = sagas::kind_number(options_.name, what.type, what.version);
  const auto now = tx.env().now();
  const auto origin = sagas::origin_text(tx.cause());
  std::vector<saga_id> ids;
  std::vector<parameters> rows;
  for (const auto& one : all) {
    check_name(one.entity, {"entity of a saga", event_limits::key_bytes_max});
    ids.push_back(
        one.options.id
            ? *one.options.id
            : saga_id(derived_id({"saga", "id", options_.name, what.type, one.entity, ""}).value()));
    rows.push_back({ids.back(), kind, sagas::shard_of(ids.back()), one.entity, blob{one.input}, now,
                    one.options.deadline, origin});
  }
  bool stored = false;
  {
    const std::scoped_lock lock(kinds_mutex_);
    stored = kinds_stored_;
  }
  if (!stored) tx.post(queries::saga::add_kind, {kind, options_.name, what.type, what.version});
  const auto started = tx.execute_many(queries::saga::start_saga, rows);
  for (std::size_t i = 0; i < started.size(); ++i) {
    if (started[i] == 1)
      tx.wake_on_commit();
    else
      expect_same(tx, what, ids[i], all[i].input);
  }
  return ids;
}

// Somebody has started it before.
void saga_host::engine::expect_same(transaction& tx, const detail::saga_definition& what, saga_id id,
                                    const std::string& input) const {
  namespace columns = queries::saga::read_start_columns;
  const auto known = tx.execute(queries::saga::read_start, {id});
  const auto kind = known[0][columns::kind].integer();
  const bool same_type = kind == sagas::kind_number(options_.name, what.type, what.version) ||
                         std::ranges::any_of(kinds_, [&](const auto& one) {
                           return one.first == kind && one.second.what->type == what.type;
                         });
  if (!same_type) throw saga_mismatch("saga " + id.text() + " is of another type than " + what.type);
  if (known[0][columns::input].bytes() != input)
    throw saga_mismatch("saga " + id.text() + " of " + known[0][columns::entity_id].text() +
                        " was started with another input");
}

saga_id saga_host::engine::start(const detail::saga_definition& what, std::string_view entity,
                                 const std::string& input, const saga_start_options& options) {
  auto tx = db_.begin();
  const new_saga<std::string> one{std::string(entity), input, options};
  const auto ids = start(tx, what, {&one, 1});
  tx.commit("saga.start");
  return ids.front();
}

void saga_host::engine::refresh(const std::stop_token& cancel) {
  for (auto& [kind, known] : kinds_) {
    const auto lost = known.shards.refresh(cancel);
    if (lost.empty()) continue;
    std::erase_if(in_memory_, [&, kind = kind](const auto& one) {
      return one.second->row.kind == kind && std::ranges::find(lost, one.second->row.shard) != lost.end();
    });
  }
}

// Whoever does not know how a transaction ended, or whether all its calls were sent, raises its fences before
// it reads again: that waits for the end, and finds the sagas that have calls out.
void saga_host::engine::forget_everything() {
  if (sagas::frames_end_with_their_transaction()) in_memory_.clear();
  if (!sagas::doubt_raises_fences()) return;
  for (auto& [kind, known] : kinds_) known.shards.drop_all();
}

bool saga_host::engine::run_once(const std::stop_token& cancel) {
  add_kinds(cancel);
  refresh(cancel);
  const bool events = run_events(cancel);
  auto next = collect();
  if (next.sagas.empty()) return sweep() || events;
  try {
    run_round(next, cancel);
  } catch (const std::exception& e) {
    report_.round_failed(e.what());
    forget_everything();
    throw;
  }
  if (env().now() - next_sweep_ > sweep_every) sweep();  // also if there is always something to do
  return true;
}

bool saga_host::engine::sweep() {
  const auto now = env().now();
  if (now < next_sweep_ && next_sweep_ - now <= sweep_every) return false;
  const auto gone = sagas::sweep_ended(db_, now - options_.keep, sweep_slice);
  const auto mail = sagas::sweep_mail(db_, now - options_.mailbox_keep, sweep_slice);
  if (mail > 0) env().counters->add("settle_saga_events_unclaimed_total", {{"host", options_.name}}, mail);
  {
    auto look = db_.read();
    report_.stranded(sagas::find_stranded(look));
  }
  if (gone == sweep_slice || mail == sweep_slice) return true;
  next_sweep_ = now + sweep_every;
  return false;
}

wakeup& saga_host::engine::arrivals() {
  if (!bell_.listens()) bell_.listen_to(db_.watch());
  // What arrives there wakes the database, and so this one.
  if (events_ && !events_->is_empty() && !events_loop_) events_loop_.emplace(*events_);
  return bell_;
}

duration saga_host::engine::idle_wait() const {
  auto wait = options_.idle_poll;
  if (next_due_) wait = std::min<duration>(wait, *next_due_ - env().now());
  return std::max<duration>(wait, std::chrono::milliseconds(1));
}

void saga_host::engine::leave() noexcept try {
  if (events_loop_)
    events_loop_.reset();
  else if (events_ && !events_->is_empty())
    events_->leave();
  calls_.finish();
  while (!kinds_.empty()) {
    auto last = collect();
    std::erase_if(last.sagas, [&](const auto& one) { return !last.answers.contains(one.first); });
    if (last.sagas.empty()) break;
    run_round(last, {});
    calls_.finish();
  }
  in_memory_.clear();
  auto tx = db_.begin();
  for (auto& [kind, known] : kinds_) known.shards.leave(tx);
  tx.commit("saga.leave");
  forget_everything();
} catch (const std::exception& e) {
  if_possible([&] {
    env().log->write(log_level::warning, "saga_leave_failed", {{"host", options_.name}, {"error", e.what()}});
  });
}

saga_host::saga_host(database& db, const saga_host_options& options)
    : engine_(std::make_unique<engine>(db, nullptr, options)) {}
saga_host::saga_host(database& db, broker& from, const saga_host_options& options)
    : engine_(std::make_unique<engine>(db, &from, options)) {}
saga_host::~saga_host() = default;

saga_host& saga_host::add(std::shared_ptr<const detail::saga_definition> what) {
  engine_->add(std::move(what));
  return *this;
}

saga_id saga_host::start(transaction& tx, const detail::saga_definition& what, std::string_view entity,
                         std::string input, const saga_start_options& options) {
  const new_saga<std::string> one{std::string(entity), std::move(input), options};
  return engine_->start(tx, what, {&one, 1}).front();
}

std::vector<saga_id> saga_host::start_all(transaction& tx, const detail::saga_definition& what,
                                          std::span<const new_saga<std::string>> all) {
  return engine_->start(tx, what, all);
}

saga_id saga_host::start(const detail::saga_definition& what, std::string_view entity, std::string input,
                         const saga_start_options& options) {
  return engine_->start(what, entity, input, options);
}

saga_host& saga_host::on(std::string_view topic, std::string_view type,
                         std::function<std::string(std::string_view)> key_of) {
  engine_->on(topic, type, std::move(key_of));
  return *this;
}

bool saga_host::deliver(transaction& tx, std::string_view type, std::string_view event_id,
                        std::string payload) {
  return engine_->deliver(tx, type, event_id, std::move(payload));
}

bool saga_host::run_once(std::stop_token cancel) { return engine_->run_once(cancel); }
saga_counts saga_host::counts() const { return engine_->counts(); }
std::string_view saga_host::name() const { return engine_->name(); }
const environment& saga_host::env() const { return engine_->env(); }
wakeup& saga_host::arrivals() { return engine_->arrivals(); }
duration saga_host::idle_wait() const { return engine_->idle_wait(); }
void saga_host::leave() noexcept { engine_->leave(); }

}  // namespace settle::inline v0
