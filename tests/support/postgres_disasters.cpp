#include "support/postgres_disasters.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

constexpr duration lease = 200ms;

// Events are named by numbers that grow in the order of publishing; `emitted` holds what was committed.
class observed_outbox {
 public:
  // As an operator would have it: the relay is started anew on every database that it is led to.
  void connect(const std::string& conninfo) {
    relay_.reset();
    db_ = postgres::open(conninfo, {.env = {.log = &log_}});
    relay_ = std::make_unique<relay>(*db_, destination_, relay_options{.lease_ttl = lease});
    taken_over_ = std::chrono::steady_clock::now() + 2 * lease;
  }

  void prepare() const {
    migrate(*db_);
    auto tx = db_->begin();
    tx.execute_script("create table emitted (name integer not null)");
    tx.commit();
  }

  void emit(int count) {
    for (int i = 0; i < count; ++i) try {
        auto tx = db_->begin();
        tx.execute("insert into emitted values ($1)", {last_ + 1});
        publish(tx, event{.topic = "t", .type = "e", .key = "k", .payload = std::to_string(last_ + 1)});
        tx.commit();
        ++last_;
      } catch (const error& e) {
        if (!e.retryable()) throw;
        --i;
      }
  }

  // Until nothing is left, or the relay stops for good.
  void relay_all() {
    const auto give_up = std::chrono::steady_clock::now() + 60s;
    while (true) try {
        if (!relay_->run_once() && std::chrono::steady_clock::now() > taken_over_) return;
      } catch (const error& e) {
        if (!e.retryable() || std::chrono::steady_clock::now() > give_up) {
          found_.errors.push_back(e.code());
          return;
        }
        std::this_thread::sleep_for(10ms);
      }
  }

  void run_on_a_standby(const std::string& conninfo) {
    const auto standby = postgres::open(conninfo, {.env = {.log = &log_}});
    try {
      relay(*standby, destination_).run_once();
    } catch (const error& e) {
      found_.on_a_standby = e.what();
    }
  }

  bool stopped_by(errc why) const { return std::ranges::find(found_.errors, why) != found_.errors.end(); }
  void rebase() const {
    auto tx = db_->begin();
    tx.execute("select settle.rebase_outbox()");
    tx.commit();
  }

  aftermath look() {
    std::vector<std::string> there, seen;
    const auto rows = db_->read().execute("select name from emitted order by name");
    for (std::size_t i = 0; i < rows.size(); ++i) there.push_back(std::to_string(rows[i][0].integer()));
    for (const auto& name : destination_.payloads())
      if (std::ranges::find(seen, name) == seen.end()) seen.push_back(name);
    for (const auto& name : seen)
      if (std::ranges::find(there, name) == there.end()) found_.ghosts.push_back(name);
    for (const auto& name : there)
      if (std::ranges::find(seen, name) == seen.end()) found_.lost.push_back(name);
    for (std::size_t i = 1; i < seen.size(); ++i)
      if (std::stoi(seen[i]) < std::stoi(seen[i - 1])) found_.reordered.push_back(seen[i]);
    return found_;
  }

 private:
  quiet_log log_;
  recording_publisher destination_;
  std::unique_ptr<database> db_;
  std::unique_ptr<relay> relay_;
  std::chrono::steady_clock::time_point taken_over_;  // by then the relay before this one has lost its shares
  int last_ = 0;
  aftermath found_;
};

// Commits that nobody waits for stay in memory as long as the server's own writer does not run.
class stopped_log_writer {
 public:
  explicit stopped_log_writer(const std::string& conninfo)
      : pid_(std::stoi(
            run_sql(conninfo, "select pid from pg_stat_activity where backend_type = 'walwriter'"))) {
    if (::kill(pid_, SIGSTOP) != 0) throw std::runtime_error("cannot stop the server's log writer");
  }
  ~stopped_log_writer() {
    if (pid_ > 0) ::kill(pid_, SIGCONT);
  }
  stopped_log_writer(const stopped_log_writer&) = delete;
  stopped_log_writer& operator=(const stopped_log_writer&) = delete;

  void die() { ::kill(std::exchange(pid_, 0), SIGKILL); }

 private:
  pid_t pid_;
};

void await(const std::function<bool()>& true_at_last) {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (!true_at_last()) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("waited for a minute");
    std::this_thread::sleep_for(10ms);
  }
}

void run_shell(const std::string& line) {
  if (std::system(line.c_str()) != 0) throw std::runtime_error("failed: " + line);
}

}  // namespace

aftermath kill_with_unsynced_commits() {
  const private_server server;
  observed_outbox outbox;
  outbox.connect(server.conninfo());
  outbox.prepare();
  outbox.connect(with(server.conninfo(), "options=-csynchronous_commit=off"));
  for (int round = 0; round < 2; ++round) {
    stopped_log_writer writer(server.conninfo());
    outbox.emit(10);
    outbox.relay_all();
    outbox.emit(10);
    server.command("crash postgres");
    writer.die();
    server.command("start postgres");
    outbox.relay_all();
  }
  return outbox.look();
}

aftermath promote_the_standby() {
  const private_server server;
  server.command("up standby");
  const auto primary = server.conninfo();
  const auto standby = server.standby_conninfo();
  observed_outbox outbox;
  outbox.connect(fmt::format("{} host={},{} port={},{} target_session_attrs=read-write", primary,
                             word_of(primary, "host"), word_of(standby, "host"), word_of(primary, "port"),
                             word_of(standby, "port")));
  outbox.prepare();
  outbox.emit(10);
  outbox.relay_all();
  outbox.emit(10);
  const auto written = run_sql(primary, "select pg_current_wal_lsn()");
  await([&] {
    return run_sql(standby, "select pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") == "t";
  });
  outbox.run_on_a_standby(standby);
  server.command("crash postgres");
  server.command("promote");
  outbox.emit(5);
  outbox.relay_all();
  if (outbox.stopped_by(errc::cluster_changed)) outbox.rebase();
  outbox.emit(5);
  outbox.relay_all();
  return outbox.look();
}

aftermath restore_into_a_fresh_cluster() {
  const scratch_database old;
  observed_outbox outbox;
  outbox.connect(old.conninfo());
  outbox.prepare();
  // Older than the cluster that it will be restored into.
  old.run("do $$ begin for i in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$");
  outbox.emit(10);
  outbox.relay_all();
  outbox.emit(10);
  const private_server fresh;
  run_sql(fresh.conninfo(), "create role settle_publisher nologin");
  run_shell(fmt::format("pg_dump \"{}\" | psql -q -v ON_ERROR_STOP=1 \"{}\" >/dev/null", old.conninfo(),
                        fresh.conninfo()));
  outbox.connect(fresh.conninfo());
  outbox.emit(5);
  outbox.relay_all();
  if (outbox.stopped_by(errc::cluster_changed)) outbox.rebase();
  outbox.emit(5);
  outbox.relay_all();
  return outbox.look();
}

}  // namespace settle::test
