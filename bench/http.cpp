// The HTTP kit: 32 clients that keep their connections ask for 100 bytes. Raw is nginx with a file of 100
// bytes, where it is installed (tools/setup bench). Server and clients have one core each.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "harness.hpp"
#include "http_load.hpp"
#include "processes.hpp"
#include "settle/http_server.hpp"

namespace {

constexpr int connections = 32;
constexpr int server_core = 0;
constexpr int client_core = 1;
const std::string body(100, 'x');

// Children: `ours PORT`, and `nginx FOLDER`, which becomes nginx.
void serve(const bench::options& opts) {
  bench::pin_to_core(server_core);
  if (opts.role.at(0) == "nginx") {
    const auto& folder = opts.role.at(1);
    ::execlp("nginx", "nginx", "-p", folder.c_str(), "-c", "nginx.conf", "-e", "error.log", nullptr);
    throw std::runtime_error("nginx cannot be started");
  }
  const bench::stop_signal stop;
  settle::http::router routes;
  const auto answer = [](const settle::http::request&) {
    return settle::http::text(200, "text/plain", body);
  };
  routes.get("/quick.txt", answer, {.quick = true}).get("/worker.txt", answer);
  settle::http::server server(std::move(routes),
                              {.port = static_cast<std::uint16_t>(std::stoi(opts.role.at(1)))});
  stop.wait();
  server.drain(std::chrono::seconds(5));
}

bool has_nginx() { return std::system("command -v nginx >/dev/null 2>&1") == 0; }

void configure_nginx(const std::string& folder, std::uint16_t port) {
  std::filesystem::create_directories(folder + "/www");
  std::ofstream(folder + "/www/quick.txt") << body;
  // Not as root's other user: the folder may be one that only we can read.
  std::ofstream(folder + "/nginx.conf")
      << "daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log error.log crit;\n"
      << "events { worker_connections 1024; }\n"
      << "http { access_log off; keepalive_requests 1000000000; open_file_cache max=10;\n"
      << "  types { text/plain txt; } client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;\n"
      << "  uwsgi_temp_path t4; scgi_temp_path t5;\n"
      << "  server { listen 127.0.0.1:" << port << "; root www; } }\n";
}

// Of all threads of a process, in seconds: what a busy machine does not change.
double cpu_seconds_of(pid_t process) {
  double sum = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    double nanoseconds = 0;
    std::ifstream(thread.path() / "schedstat") >> nanoseconds;
    sum += nanoseconds / 1e9;
  }
  return sum;
}

struct target {
  bench::child process;
  bench::http_load load;
  target(std::vector<std::string> role, std::uint16_t port, const std::string& path)
      : process(std::move(role)), load((bench::await_listener(port), port), connections, path) {}
};

void run(const bench::options& opts) {
  const auto folder = std::filesystem::absolute(opts.folder).string();
  const int rounds = opts.quick ? 1 : 21;
  const std::int64_t requests = opts.quick ? 200 : 10'000;
  const auto ours_at = bench::free_port();
  target ours({"ours", std::to_string(ours_at)}, ours_at, "/quick.txt");
  std::optional<target> nginx;
  if (has_nginx()) {
    const auto port = bench::free_port();
    configure_nginx(folder, port);
    nginx.emplace(std::vector<std::string>{"nginx", folder}, port, "/quick.txt");
  }
  bench::pin_to_core(client_core);
  // The processor time is the server's, not the clients'.
  const auto rate = [&](bench::http_load& load, const bench::child& server) {
    return [&] {
      const auto before = cpu_seconds_of(server.pid());
      auto taken = bench::measure(requests, [&] { load.run(requests); });
      taken.cpu_seconds = cpu_seconds_of(server.pid()) - before;
      return taken;
    };
  };
  const auto report = [&](const std::string& name, bench::http_load& load, std::optional<double> goal) {
    const auto own = rate(load, ours.process);
    const auto turns = bench::take_turns(rounds, own, nginx ? rate(nginx->load, nginx->process) : own);
    auto made = bench::compare(turns, nginx ? goal : std::nullopt);
    if (!nginx) made.raw = made.ratio = std::nullopt;
    std::erase_if(made.counters,
                  [](const auto& one) { return one.name.find("_cpu_us") == std::string::npos; });
    made.name = name;
    made.unit = "requests/s";
    return made;
  };
  auto quick = report("http", ours.load, 0.5);
  quick.what = "100 bytes from a quick handler, 32 connections; raw: nginx with a file of 100 bytes";
  bench::http_load workers(ours_at, connections, "/worker.txt");  // not before: idle connections are closed
  auto worker = report("http_worker", workers, std::nullopt);
  worker.what = "the same from a handler on the pool of workers, which share the server's core";
  bench::write(opts, {quick, worker});
  ours.process.stop();
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run, serve); }
