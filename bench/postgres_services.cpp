// Twenty services in one daemon, each with a PostgreSQL database of its own: what they cost while nothing
// happens, whether one is as fast as alone, and how long a reload keeps those waiting that did not change.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "harness.hpp"
#include "http_load.hpp"
#include "raw_postgres.hpp"
#include "statement_counter.hpp"

namespace {

using namespace std::chrono_literals;

int services_of(const bench::options& opts) { return opts.quick ? 3 : 20; }

// A real settled, ended with its scope.
class daemon_process {
 public:
  // `databases` are in the environment, because they have passwords.
  daemon_process(const std::filesystem::path& folder, const std::vector<std::string>& databases)
      : folder_(folder), port_(bench::free_port()) {
    std::filesystem::create_directories(folder_);
    configure(static_cast<int>(databases.size()), "");
    pid_ = ::fork();
    if (pid_ != 0) {
      bench::await_listener(port_);
      return;
    }
    for (std::size_t n = 0; n < databases.size(); ++n)
      ::setenv(fmt::format("DATABASE_{}", n).c_str(), databases[n].c_str(), 1);
    const auto file = (folder_ / "settled.toml").string();
    const auto log = (folder_ / "log").string();
    if (std::freopen(log.c_str(), "w", stderr) == nullptr) ::_exit(126);
    ::execl(SETTLED, SETTLED, "--config", file.c_str(), nullptr);
    ::_exit(127);
  }
  ~daemon_process() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  daemon_process(const daemon_process&) = delete;
  daemon_process& operator=(const daemon_process&) = delete;

  void configure(int count, const std::string& more) const {
    std::ofstream out(folder_ / "settled.toml.new");
    out << fmt::format("listen = \"127.0.0.1:{}\"\ndata = \"{}\"\n[broker.main]\nurl = \"{}\"\n", port_,
                       (folder_ / "data").string(), (folder_ / "main.db").string());
    for (int n = 0; n < count; ++n)
      out << fmt::format("[service.s{}]\ndatabase_env = \"DATABASE_{}\"\n", n, n);
    out << more;
    out.close();
    std::filesystem::rename(folder_ / "settled.toml.new", folder_ / "settled.toml");
  }

  void await_ready() const {
    for (const auto end = bench::clock::now() + 60s; bench::clock::now() < end;
         std::this_thread::sleep_for(50ms))
      if (std::ifstream in(folder_ / "log"); count_in(in, " info ready ") >= ready_services()) return;
    throw std::runtime_error("the daemon's services were not ready within a minute");
  }

  // Its own memory in MB: without what it shares with every other process, such as libraries.
  double own_megabytes() const {
    std::ifstream in(fmt::format("/proc/{}/smaps_rollup", pid_));
    double kilobytes = 0;
    for (std::string word; in >> word;)
      if (word == "Private_Clean:" || word == "Private_Dirty:") {
        double some = 0;
        in >> some;
        kilobytes += some;
      }
    return kilobytes / 1000;
  }
  double resident_megabytes() const {
    std::ifstream in(fmt::format("/proc/{}/status", pid_));
    double kilobytes = 0;
    for (std::string word; in >> word;)
      if (word == "VmRSS:") in >> kilobytes;
    return kilobytes / 1000;
  }

  // Until the log says that it goes by the file as it is now.
  void reload() const {
    const auto before = reloads();
    ::kill(pid_, SIGHUP);
    while (reloads() == before) std::this_thread::sleep_for(1ms);
  }

  std::uint16_t port() const { return port_; }

 private:
  static std::size_t count_in(std::istream& in, const std::string& what) {
    std::size_t found = 0;
    for (std::string line; std::getline(in, line);) found += line.find(what) != std::string::npos ? 1 : 0;
    return found;
  }
  std::size_t reloads() const {
    std::ifstream in(folder_ / "log");
    return count_in(in, " info reloaded ");
  }
  std::size_t ready_services() const {
    std::ifstream in(folder_ / "settled.toml");
    return count_in(in, "[service.");
  }

  std::filesystem::path folder_;
  std::uint16_t port_;
  pid_t pid_ = -1;
};

bench::report idle_memory(const daemon_process& many) {
  bench::report r;
  r.name = "services_idle_memory";
  r.what = "resident memory of a daemon with 20 idle services";
  r.unit = "MB";
  r.lower_is_better = true;
  r.ours = many.resident_megabytes();
  r.target = "< 40";
  r.reached = r.ours < 40;
  r.counters = {{"private_megabytes", many.own_megabytes()}};
  return r;
}

// Of those on the line: all but the first.
bench::report idle_statements(const bench::statement_counter& line, const bench::options& opts) {
  const auto counted = opts.quick ? 1s : 10s;
  std::this_thread::sleep_for(opts.quick ? 500ms : 4000ms);  // after work they look more often for a while
  const auto before = line.statements();
  std::this_thread::sleep_for(counted);
  bench::report r;
  r.name = "services_idle_statements";
  r.what = "statements of each of 20 idle services";
  r.unit = "stmts/s";
  r.lower_is_better = true;
  r.ours = static_cast<double>(line.statements() - before) / (services_of(opts) - 1) /
           std::chrono::duration<double>(counted).count();
  r.target = "< 5";
  r.reached = r.ours < 5;
  return r;
}

// From the commit of all of them until the last one is published.
bench::slice relay_all(bench::raw_connection& db, std::int64_t events) {
  return bench::measure(events, [&] {
    bench::fill_outbox(db, events);
    while (db.number("select count(*) from settle.outbox_events where status = 'PENDING'") > 0)
      std::this_thread::sleep_for(5ms);
  });
}

// The longest wait of a claim on a service that no reload changes, while others come and go.
bench::report reloads(const daemon_process& many, const bench::options& opts) {
  const int rounds = opts.quick ? 2 : 10;
  std::atomic<bool> over = false;
  std::vector<double> waits;
  std::jthread claims([&] {
    int number = 0;
    bench::http_load one(many.port(), 1, [&](std::size_t, std::string_view) {
      return bench::post_of("/services/s0/v1/keys/claim",
                            fmt::format(R"({{"service":"s","caller":"c","key":"{}"}})", ++number),
                            "Content-Type: application/json\r\n");
    });
    while (!over) waits.push_back(bench::measure(1, [&] { one.run(1); }).seconds * 1000);
  });
  std::vector<double> took;
  for (int n = 0; n < rounds; ++n) {
    many.configure(n % 2 == 0 ? services_of(opts) - 1 : services_of(opts),
                   n % 3 == 0 ? "[service.s1.relay]\nbatch_max = 100\n" : "");
    took.push_back(bench::measure(1, [&] { many.reload(); }).seconds * 1000);
  }
  over = true;
  claims.join();
  bench::report r;
  r.name = "services_reload";
  r.what = "longest wait of a claim on a service that did not change, over ten reloads";
  r.unit = "ms";
  r.lower_is_better = true;
  r.ours = bench::percentile(waits, 1);
  r.target = "< 100";
  r.reached = r.ours < 100;
  r.counters = {{"reload_ms_p50", bench::percentile(took, 0.5)},
                {"claim_ms_p50", bench::percentile(waits, 0.5)}};
  return r;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const int services = services_of(opts);
  std::vector<std::unique_ptr<bench::scratch>> databases;
  for (int n = 0; n <= services; ++n)
    databases.push_back(std::make_unique<bench::scratch>(server, fmt::format("service_{}", n)));
  bench::raw_connection elsewhere(server);
  const bench::statement_counter line(elsewhere.get());
  std::vector<std::string> of_many;
  // The first one is at work below, so it is not slowed down by the line that counts.
  for (int n = 0; n < services; ++n)
    of_many.push_back(databases[static_cast<std::size_t>(n)]->conninfo() + (n == 0 ? "" : line.detour()));
  std::vector<bench::report> found;
  const daemon_process many(opts.folder / "many", of_many);
  many.await_ready();
  found.push_back(idle_statements(line, opts));
  found.push_back(idle_memory(many));
  const daemon_process alone(opts.folder / "alone", {databases.back()->conninfo()});
  alone.await_ready();
  bench::raw_connection busy(databases[0]->conninfo());
  bench::raw_connection single(databases.back()->conninfo());
  const std::int64_t events = opts.quick ? 100 : 20'000;
  auto throughput = bench::compare(bench::take_turns(
                                       opts.quick ? 1 : 7, [&] { return relay_all(busy, events); },
                                       [&] { return relay_all(single, events); }),
                                   0.9);
  throughput.name = "services_throughput";
  throughput.what = "relaying for one of 20 services, the others idle; raw: a daemon with it alone";
  throughput.unit = "events/s";
  throughput.counters.clear();
  found.push_back(throughput);
  found.push_back(reloads(many, opts));
  return found;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
