// Runs every bench, prints one table and writes one JSON file. Misses are reported, never an error: the exit
// status is 0 if every bench ran.
//
// Usage: bench_run [--quick] [--folder DIR] [--json FILE] [name…]
//
// Without names: all but the long ones, which take many minutes each.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const std::vector<std::string> all_benches{"emit",
                                           "relay",
                                           "consumer",
                                           "consumer_failures",
                                           "latency",
                                           "published_rows",
                                           "writers",
                                           "lock",
                                           "http",
                                           "saga",
                                           "saga_waiting",
                                           "postgres_emit",
                                           "postgres_relay",
                                           "postgres_consumer",
                                           "postgres_once",
                                           "postgres_latency",
                                           "postgres_rows",
                                           "postgres_idle",
                                           "postgres_saga",
                                           "postgres_saga_waiting",
                                           "postgres_lock",
                                           "postgres_keys",
                                           "middleware",
                                           "saga_http",
                                           "postgres_middleware",
                                           "verify",
                                           "postgres_verify",
                                           "postgres_services",
                                           "rabbitmq_relay",
                                           "rabbitmq_consumer",
                                           "rabbitmq_latency",
                                           "kafka_relay",
                                           "kafka_consumer",
                                           "kafka_latency"};

const std::vector<std::string> long_benches{"consumer_soak", "postgres_open_transaction",
                                            "postgres_many_keys", "rabbitmq_waiting"};

struct arguments {
  bool quick = false;
  fs::path folder = "bench-data";
  fs::path json = "bench.json";
  std::vector<std::string> benches;
};

arguments parse(int argc, char** argv) {
  arguments given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick")
      given.quick = true;
    else if (word == "--folder" && i + 1 < argc)
      given.folder = argv[++i];
    else if (word == "--json" && i + 1 < argc)
      given.json = argv[++i];
    else if (std::ranges::find(all_benches, word) != all_benches.end() ||
             std::ranges::find(long_benches, word) != long_benches.end())
      given.benches.push_back(word);
    else
      throw std::invalid_argument(
          fmt::format("usage: bench_run [--quick] [--folder DIR] [--json FILE] [{}|{}]",
                      fmt::join(all_benches, "|"), fmt::join(long_benches, "|")));
  }
  if (given.benches.empty()) given.benches = all_benches;
  if (given.quick && given.benches == all_benches)
    std::ranges::copy(long_benches, std::back_inserter(given.benches));
  return given;
}

int run_program(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) < 0) return -1;
  return status;
}

json::array run_bench(const std::string& name, const arguments& given) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / ("bench_" + name);
  const fs::path data = given.folder / name;
  const fs::path out = given.folder / (name + ".json");
  std::vector<std::string> words{program, "--folder", data, "--out", out};
  if (given.quick) words.push_back("--quick");
  if (run_program(words) != 0) throw std::runtime_error("bench_" + name + " failed");
  std::stringstream text;
  text << std::ifstream(out).rdbuf();
  return json::parse(text.str()).as_array();
}

std::optional<double> number(const json::object& of, const char* field) {
  const auto& found = of.at(field);
  return found.is_null() ? std::nullopt : std::optional(found.to_number<double>());
}

std::string figure(std::optional<double> value) {
  if (!value) return "-";
  if (*value >= 1000) return fmt::format("{:.0f}", *value);
  return *value >= 10 ? fmt::format("{:.1f}", *value) : fmt::format("{:.2f}", *value);
}

// Twenty cells are as good as raw; a bar that is full may stand for more.
std::string bar(std::optional<double> ratio) {
  constexpr int cells = 20;
  const int filled = ratio ? std::clamp(static_cast<int>(*ratio * cells + 0.5), 0, cells) : 0;
  std::string drawn;
  for (int i = 0; i < cells; ++i) drawn += i < filled ? "█" : "░";
  return drawn;
}

std::string verdict(const json::object& one) {
  const auto& pass = one.at("pass");
  if (pass.is_null()) return "";
  return pass.as_bool() ? "reached" : "missed";
}

std::string text(const json::object& of, const char* field) {
  const auto& found = of.at(field);
  return found.is_null() ? "" : std::string(found.as_string());
}

void print(const json::array& results) {
  fmt::print("{:<26} {:>10} {:>10} {:<10} {:>6}  {:<20}  {:<13} {}\n", "bench", "ours", "raw", "unit",
             "ratio", "share of raw", "target", "");
  for (const auto& entry : results) {
    const auto& one = entry.as_object();
    const auto ratio = number(one, "ratio");
    fmt::print("{:<26} {:>10} {:>10} {:<10} {:>6}  {}  {:<13} {}\n", text(one, "name"),
               figure(number(one, "ours")), figure(number(one, "raw")), text(one, "unit"), figure(ratio),
               bar(ratio), text(one, "target"), verdict(one));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto given = parse(argc, argv);
    fs::create_directories(given.folder);
    json::array results;
    for (const auto& name : given.benches) {
      fmt::print(stderr, "{} …\n", name);
      for (auto& one : run_bench(name, given)) results.push_back(std::move(one));
    }
    fs::remove_all(given.folder);
    print(results);
    const bool quick = given.quick;
    std::ofstream file(given.json, std::ios::trunc);
    file << json::serialize(json::object{{"quick", quick}, {"benches", results}}) << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + given.json.string());
    fmt::print("\nRatio 1 is as good as the raw limit in the same run. Figures of each: {}\n",
               given.json.string());
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_run: {}\n", e.what());
    return 2;
  }
}
