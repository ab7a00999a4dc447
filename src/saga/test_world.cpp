#include "saga/test_world.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "queries/saga.hpp"
#include "saga/replay.hpp"
#include "saga/store.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"

namespace settle::sagas {

namespace {

// In memory where there is such a folder: nobody needs these files to outlive a power cut.
std::filesystem::path fastest_folder() {
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
}

// How hosts share their work, whatever the saga: the library's own tests crash there.
bool is_housekeeping(std::string_view point) {
  for (const std::string_view one : {"saga.refresh", "saga.take_over", "saga.add_kinds", "saga.sweep"})
    if (point.starts_with(one)) return true;
  return false;
}

}  // namespace

own_folder::own_folder() {
  auto name = (fastest_folder() / "settle-world-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw error(errc::store_unavailable, "a folder for the test's database cannot be made: " + name);
  path_ = name;
}

own_folder::~own_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void crash_points::reached(std::string_view point) {
  if (!crashed_) {
    if (is_housekeeping(point)) return;
    if (recording_) seen_.emplace_back(point);
    if (crash_at_ != passed_++) return;
    crashed_ = true;
  }
  throw error::with_unknown_outcome(errc::store_unavailable,
                                    "the process has crashed at " + std::string(point));
}

namespace {

void add_effect(const journal& of, const journal_row& row, std::vector<std::string>& to) {
  if (row.kind == row_kind::done && !row.of) to.push_back(of.outside_name(row.n));
  if (row.kind == row_kind::outcome) to.push_back(of.outside_name(*row.of));
  if (row.kind == row_kind::undone) to.push_back("undo " + of.outside_name(*row.of));
}

std::vector<std::string> effects_of(const journal& of) {
  std::vector<std::string> all;
  for (const auto& row : of.rows()) add_effect(of, row, all);
  return all;
}

std::string why_different(const seen_saga& of, const replayed& again) {
  if (!again.difference.empty()) return again.difference;
  if (of.status != "COMPLETED") return again.ended && of.status == "RUNNING" ? "the body ends" : "";
  if (!again.ended) return "the body does not end any more";
  if (again.result != of.result.value_or("")) return "the body returns something else";
  return {};
}

}  // namespace

}  // namespace settle::sagas

namespace settle::inline v0::testing {

using sagas::row_kind;

namespace {

constexpr duration lease = std::chrono::milliseconds(100);
constexpr int turns_max = 100'000;

sagas::seen_saga read_seen(const result::row& row) {
  namespace columns = queries::saga::read_world_columns;
  sagas::seen_saga one;
  one.no = row[columns::no].integer();
  one.id = saga_id::parse(row[columns::id].text()).value();
  one.type = row[columns::type].text();
  one.version = static_cast<int>(row[columns::version].integer());
  one.entity = row[columns::entity_id].text();
  one.status = row[columns::status].text();
  one.last_error = row[columns::last_error].text();
  one.input = row[columns::input].bytes();
  if (!row[columns::result].is_null()) one.result = row[columns::result].bytes();
  one.created_at = row[columns::created_at].time();
  return one;
}

}  // namespace

// A database that is a file is copied from one that was migrated already.
void saga_world::parts::open(const parts* like) {
  if (options.reset) options.reset();
  const environment env{.time = &time, .log = &log, .counters = &counters, .faults = &points};
  const bool copied = like != nullptr && !std::filesystem::is_empty(like->folder.path());
  if (copied)
    std::filesystem::copy(like->folder.path(), folder.path(), std::filesystem::copy_options::recursive);
  db = options.open ? options.open(folder.path(), env)
                    : sqlite::open(folder.path() + "/world.db", {.env = env});
  migrate(*db);
  if (copied || !options.prepare) return;
  auto tx = db->begin();
  options.prepare(tx);
  tx.commit("world.prepare");
}

saga_host& saga_world::parts::running() {
  if (host) return *host;
  host.emplace(
      *db, saga_host_options{.name = "world", .steps_max = steps_max, .call_threads = 0, .lease_ttl = lease});
  for (const auto& one : definitions) host->add(saga_type<int>(sagas::tested(*one, book, points)));
  for (const auto& how : setups) how(*host);
  return *host;
}

// Its lease is over when the next one starts.
void saga_world::parts::restart() {
  host.reset();
  points.restarted();
  time.advance(lease + std::chrono::milliseconds(1));
}

// Until it is done, over all crashes: as a caller who was not told repeats what he wants.
void saga_world::parts::attempt(const std::function<void()>& what) {
  while (true) {
    try {
      what();
    } catch (const std::exception&) {
      if (!points.has_crashed()) throw;
    }
    if (!points.has_crashed()) return;
    restart();
  }
}

void saga_world::parts::drain() {
  if (definitions.empty()) throw std::logic_error("saga_world: add() the types of sagas first");
  bool more = true;
  for (int turns = 0; more; ++turns) {
    if (turns > turns_max) throw std::logic_error("saga_world: the sagas do not come to rest");
    attempt([&] { more = running().run_once(); });
  }
  check_bodies();
}

std::optional<timestamp> saga_world::parts::next_due() {
  const auto found = db->read().execute(queries::saga::next_due_of_all);
  const auto at = found[0][queries::saga::next_due_of_all_columns::due_at];
  return at.is_null() ? std::nullopt : std::optional(at.time());
}

std::vector<sagas::seen_saga> saga_world::parts::look() {
  auto tx = db->read();
  const auto rows = tx.execute(queries::saga::read_world);
  std::vector<sagas::seen_saga> all;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.push_back(read_seen(rows[i]));
    numbers.push_back(all.back().no);
  }
  auto journals = sagas::read_journals(tx, numbers);
  for (auto& one : all) one.rows = std::move(journals[one.no]);
  return all;
}

sagas::seen_saga saga_world::parts::find(saga_id of) {
  for (auto& one : look())
    if (one.id == of) return std::move(one);
  throw error(errc::invalid_argument, "saga_world: there is no saga " + of.text());
}

const detail::saga_definition* saga_world::parts::definition_of(const sagas::seen_saga& of) const {
  for (const auto& one : definitions)
    if (one->type == of.type && one->version == of.version) return one.get();
  return nullptr;
}

void saga_world::parts::check_bodies() {
  for (const auto& one : look()) {
    const auto state = one.status + " " + std::to_string(one.rows.rows().size());
    auto& known = checked[one.no];
    const auto* definition = definition_of(one);
    if (known == state || definition == nullptr) continue;
    for (int again = 0; again < 2; ++again) {
      const auto told = sagas::replay(*definition, one.id, one.entity, one.input, one.created_at, one.rows);
      if (told.threw && one.status != "COMPLETED") continue;  // the engine tries that again, and holds it
      const auto why = sagas::why_different(one, told);
      if (!why.empty())
        throw saga_difference(
            one.type + " " + std::to_string(one.version) + " of " + one.entity +
            " was run again, and its body does not do what it did before: " + why +
            ". A body may use nothing but its input, the answers, saga.now() and saga.new_id()");
    }
    known = state;
  }
}

saga_world::saga_world(const saga_world_options& options) : parts_(std::make_unique<parts>(options)) {
  parts_->open(nullptr);
}

saga_world::~saga_world() = default;

void saga_world::add_definition(std::shared_ptr<const detail::saga_definition> what) {
  parts_->definitions.push_back(std::move(what));
  parts_->host.reset();
}

void saga_world::deploy_definition(std::shared_ptr<const detail::saga_definition> what) {
  const auto found = std::ranges::find_if(parts_->definitions, [&](const auto& one) {
    return one->type == what->type && one->version == what->version;
  });
  if (found == parts_->definitions.end())
    throw error(errc::invalid_argument, "saga_world: " + what->type + " " + std::to_string(what->version) +
                                            " is not there: add() it");
  *found = std::move(what);
  for (const auto& one : parts_->look())
    if (one.status == "RUNNING" || one.status == "HELD") parts_->checked.erase(one.no);
  parts_->check_bodies();
  restart();
}

void saga_world::add_setup(std::function<void(saga_host&)> how) {
  parts_->setups.push_back(std::move(how));
  parts_->host.reset();
}

void saga_world::replace_step(detail::step_pointer with) {
  const auto name = with->name;
  parts_->book->replaced[name] = std::move(with);
}

saga_id saga_world::start_by(const std::function<saga_id(saga_host&)>& how) {
  saga_id id;
  parts_->attempt([&] { id = how(parts_->running()); });
  parts_->drain();
  return id;
}

void saga_world::deliver_by(const std::function<void(saga_host&, transaction&, const std::string&)>& how) {
  const auto id = "event " + std::to_string(++parts_->events);
  parts_->attempt([&] {
    auto tx = parts_->db->begin();
    how(parts_->running(), tx, id);
    tx.commit("saga.deliver");
  });
  parts_->drain();
}

void saga_world::advance(duration by) {
  auto& in = *parts_;
  const auto until = in.time.now() + by;
  auto patience = lease;
  in.drain();
  while (in.time.now() < until) {
    const auto now = in.time.now();
    const auto due = in.next_due();
    auto next = due ? std::min(*due, until) : until;
    if (next <= now) {  // it was not run: nobody owns it for the moment
      next = std::min(now + patience, until);
      patience *= 2;
    }
    in.time.advance(next - now);
    in.drain();
  }
}

void saga_world::order(saga_id of, saga_order what, const std::string& result) {
  parts_->attempt(
      [&] { order_saga(*parts_->db, of, what, {.who = "test", .reason = "test", .result = result}); });
  parts_->drain();
}

void saga_world::restart() {
  parts_->restart();
  parts_->drain();
}

void saga_world::fail(std::string_view step, step_fault how, int times) {
  parts_->book->faults[{std::string(step), false}] = {how, times};
}
void saga_world::fail_undo(std::string_view step, step_fault how, int times) {
  parts_->book->faults[{std::string(step), true}] = {how, times};
}
void saga_world::mend(std::string_view step) {
  parts_->book->faults.erase({std::string(step), false});
  parts_->book->faults.erase({std::string(step), true});
}

std::vector<std::string> saga_world::effects(saga_id of) { return sagas::effects_of(parts_->find(of).rows); }

std::vector<std::string> saga_world::waits(saga_id of) {
  const auto found = parts_->find(of);
  std::vector<std::string> all;
  if (found.status != "RUNNING") return all;
  for (const auto& row : found.rows.rows()) {
    if (!sagas::opens(row) || found.rows.answer_of(row.n) != nullptr) continue;
    if (row.kind == row_kind::timer) all.emplace_back("sleep");
    if (row.kind == row_kind::waiting) all.push_back(row.name + " of " + row.input.value_or(""));
  }
  return all;
}

std::string saga_world::status(saga_id of) { return parts_->find(of).status; }
std::string saga_world::last_error(saga_id of) { return parts_->find(of).last_error; }

std::string saga_world::result_text(saga_id of, std::string_view step) {
  const auto found = parts_->find(of);
  if (step.empty() && found.result) return *found.result;
  for (const auto& row : found.rows.rows()) {
    if (!sagas::opens(row) || found.rows.outside_name(row.n) != step) continue;
    if (row.kind == row_kind::done) return row.result.value_or("");
    if (const auto* outcome = found.rows.about(row.n, row_kind::outcome)) return outcome->result.value_or("");
  }
  throw error(errc::invalid_argument, "saga_world: there is no such result: " + std::string(step));
}

std::string saga_world::story(saga_id of) {
  const auto found = parts_->find(of);
  auto text = found.type + " " + std::to_string(found.version) + " of " + found.entity + ": " + found.status;
  if (!found.last_error.empty()) text += ", " + found.last_error;
  for (const auto& row : found.rows.rows()) {
    text += "\n  " + std::to_string(row.n) + " " + std::string(sagas::to_string(row.kind));
    if (!row.name.empty()) text += " " + row.scope + row.name;
    if (row.of) text += " (of " + std::to_string(*row.of) + ")";
    if (row.result) text += ": " + *row.result;
  }
  return text;
}

const std::vector<made_call>& saga_world::calls() const { return parts_->book->calls; }
database& saga_world::db() { return *parts_->db; }
timestamp saga_world::now() const { return parts_->time.now(); }

}  // namespace settle::inline v0::testing
