// Timeouts of a host with several processes: what was at the broker in time is no timeout, whoever has it.
#include "settle/driver/broker.hpp"
#include "settle/saga.hpp"
#include "settle/sqlite.hpp"
#include "support/memory_log_server.hpp"
#include "support/memory_queue_server.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

struct letter {
  std::string trip;
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::letter> {
  static constexpr std::string_view topic = "letters";
  static constexpr std::string_view type = "letter.came";
  static std::string key(const test::letter& l) { return l.trip; }
  static std::string encode(const test::letter& l) { return l.trip; }
  static test::letter decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace settle::test {
namespace {

flow<> wait_for_letter(saga& s, const trip& t) {
  const auto came = co_await s.wait_for<letter>(t.id, 1h);
  if (!came) co_await s.undo("no letter came");
}
const saga_type letter_saga("letter_saga", 1, wait_for_letter, {});

constexpr duration patient = 10'000h;  // nobody is taken for dead

// One broker of each kind, which several processes use.
class any_broker {
 public:
  any_broker(std::string kind, const environment& env) : kind_(std::move(kind)), env_(env) {}
  std::unique_ptr<broker> open() {
    if (kind_ == "log") return log_.open(env_);
    if (kind_ == "queue") return queue_.open(env_);
    return sqlite::open_broker(dir_.file("broker.db"), {.env = env_, .lease_ttl = patient});
  }

 private:
  std::string kind_;
  environment env_;
  temp_dir dir_;
  memory_log_server log_{patient};
  memory_queue_server queue_{patient};
};

constexpr int trips = 16;

struct hosts_of_several_processes : saga_tests {
  void begin(const std::string& kind) {
    host.reset();
    home.reset();
    server.emplace(kind, environment{.time = &time, .log = &log, .counters = &counters});
    home = server->open();
    home->create_group("trips.sagas", {"letters"});
    host.emplace(*db, *home, options());
    host->add(letter_saga);
    host->on<letter>([](const letter& l) { return l.trip; });
    drain(*host);
  }
  void start_all(const std::string& kind) {
    for (int i = 0; i < trips; ++i) {
      const auto id = kind + std::to_string(i);
      host->start(letter_saga, id, trip{id});
    }
    drain(*host);
  }
  void publish(const std::string& trip_id) {
    message m;
    m.id = "letter to " + trip_id;
    m.topic = "letters";
    m.type = "letter.came";
    m.key = m.payload = trip_id;
    ASSERT_EQ(home->publishing().publish(std::vector{m}).at(0).status, publish_status::confirmed);
  }
  // With all the pauses that it makes.
  void run_for(duration time_passes) {
    for (duration passed{}; passed < time_passes; passed += 250ms) {
      drain(*host);
      time.advance(250ms);
    }
  }
  std::int64_t with_status(const std::string& which) {
    return number("select count(*) from " + table("sagas") + " where status = '" + which + "'");
  }

  std::optional<any_broker> server;
  std::unique_ptr<broker> home;
  std::optional<saga_host> host;
};

// Proves S3
TEST_P(hosts_of_several_processes, time_out_nothing_that_a_process_which_was_stopped_has_in_hand) {
  for (const auto* kind : {"embedded", "log", "queue"}) {
    SCOPED_TRACE(kind);
    begin(kind);
    const auto other_process = server->open();
    auto stopped = other_process->subscribe({"trips.sagas", {"letters"}});
    for (int i = 0; i < 10; ++i) {  // until each has its part
      stopped->fetch(0);
      drain(*host);
      time.advance(patient / 4);
    }
    start_all(kind);
    for (int i = 0; i < trips; ++i) publish(kind + std::to_string(i));
    const auto in_hand = stopped->fetch(trips / 2).deliveries;
    ASSERT_FALSE(in_hand.empty());
    time.advance(2h);  // it is stopped, and nobody notices
    run_for(5s);
    EXPECT_EQ(with_status("RUNNING"), std::ssize(in_hand)) << "all others have got theirs";
    EXPECT_EQ(with_status("FAILED"), 0);
    stopped->leave();
    run_for(5s);
    EXPECT_EQ(with_status("COMPLETED"), trips) << "and so they get theirs";
    run(std::string("delete from ") + table("sagas"));
  }
}

// Proves S3
TEST_P(hosts_of_several_processes, time_out_what_did_not_come_also_while_others_keep_coming) {
  for (const auto* kind : {"embedded", "log", "queue"}) {
    SCOPED_TRACE(kind);
    begin(kind);
    start_all(kind);
    time.advance(2h);
    int noise = 0;
    for (int turn = 0; turn < 40 && with_status("FAILED") < trips; ++turn) {
      for (int i = 0; i < 100; ++i) publish("other " + std::to_string(noise++));
      host->run_once();  // never all of it
      time.advance(100ms);
    }
    EXPECT_EQ(with_status("FAILED"), trips);
    run(std::string("delete from ") + table("sagas"));
  }
}

INSTANTIATE_TEST_SUITE_P(databases, hosts_of_several_processes, both_databases, database_name);

}  // namespace
}  // namespace settle::test
