#include "harness.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace bench {
namespace {

double cpu_seconds_now() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

options parse(int argc, char** argv) {
  options opts;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--quick") {
      opts.quick = true;
    } else if (flag == "--folder" && i + 1 < argc) {
      opts.folder = argv[++i];
    } else if (flag == "--out" && i + 1 < argc) {
      opts.out = argv[++i];
    } else if (flag == "--role" && i + 1 < argc) {
      opts.role.assign(argv + i + 1, argv + argc);
      break;
    } else {
      throw std::invalid_argument("usage: [--quick] [--folder DIR] [--out FILE]");
    }
  }
  return opts;
}

boost::json::value or_null(const std::optional<double>& maybe) {
  if (!maybe || !std::isfinite(*maybe)) return nullptr;
  return *maybe;
}

boost::json::object to_json(const report& r) {
  boost::json::object counters;
  for (const auto& [name, value] : r.counters) counters[name] = or_null(value);
  return {{"name", r.name},
          {"what", r.what},
          {"unit", r.unit},
          {"better", r.lower_is_better ? "lower" : "higher"},
          {"ours", or_null(r.ours)},
          {"raw", or_null(r.raw)},
          {"ratio", or_null(r.ratio)},
          {"target", r.target.empty() ? boost::json::value() : boost::json::value(r.target)},
          {"pass", r.reached ? boost::json::value(*r.reached) : boost::json::value()},
          {"counters", std::move(counters)}};
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

double median_rate(const std::vector<slice>& slices) {
  std::vector<double> rates;
  for (const auto& one : slices) rates.push_back(one.rate());
  return median(std::move(rates));
}

// Ours / raw of each round.
double median_ratio(const comparison& of) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < of.ours.size(); ++i) ratios.push_back(of.ours[i].rate() / of.raw[i].rate());
  return median(std::move(ratios));
}

void add_costs(report& to, const comparison& of) {
  const auto add = [&](const std::string& whose, const std::vector<slice>& slices) {
    slice sum;
    for (const auto& one : slices) {
      sum.units += one.units;
      sum.cpu_seconds += one.cpu_seconds;
      sum.io = sum.io + one.io;
    }
    const auto each = [&](double total) { return total / static_cast<double>(sum.units); };
    to.counters.push_back({whose + "_commits_per_unit", each(static_cast<double>(sum.io.commits))});
    to.counters.push_back({whose + "_syncs_per_unit", each(static_cast<double>(sum.io.syncs))});
    to.counters.push_back(
        {whose + "_bytes_written_per_unit", each(static_cast<double>(sum.io.bytes_written))});
    to.counters.push_back({whose + "_cpu_us_per_unit", each(sum.cpu_seconds * 1e6)});
  };
  add("ours", of.ours);
  add("raw", of.raw);
}

}  // namespace

int run_program(int argc, char** argv, const std::function<void(const options&)>& body,
                const std::function<void(const options&)>& child) {
  try {
    const auto opts = parse(argc, argv);
    count_commits();
    if (!opts.role.empty() && child) {
      child(opts);
      return 0;
    }
    std::filesystem::remove_all(opts.folder);
    std::filesystem::create_directories(opts.folder);
    body(opts);
    std::filesystem::remove_all(opts.folder);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 2;
  }
}

slice measure(std::int64_t units, const std::function<void()>& work) {
  const auto io = io_now();
  const auto cpu = cpu_seconds_now();
  const auto started = clock::now();
  work();
  slice done;
  done.seconds = std::chrono::duration<double>(clock::now() - started).count();
  done.cpu_seconds = cpu_seconds_now() - cpu;
  done.io = io_now() - io;
  done.units = units;
  return done;
}

comparison take_turns(int rounds, const std::function<slice()>& ours, const std::function<slice()>& raw) {
  ours();
  raw();
  comparison taken;
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == 0) taken.ours.push_back(ours());
    taken.raw.push_back(raw());
    if (round % 2 != 0) taken.ours.push_back(ours());
  }
  return taken;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(at, 1, values.size()) - 1];
}

report compare(const comparison& turns, std::optional<double> target) {
  report r;
  r.ours = median_rate(turns.ours);
  r.raw = median_rate(turns.raw);
  r.ratio = median_ratio(turns);
  if (target) {
    std::ostringstream text;
    text << "ratio >= " << *target;
    r.target = text.str();
    r.reached = *r.ratio >= *target;
  }
  add_costs(r, turns);
  return r;
}

void write(const options& opts, const std::vector<report>& reports) {
  boost::json::array all;
  for (const auto& one : reports) all.push_back(to_json(one));
  if (opts.out.empty()) {
    std::cout << boost::json::serialize(all) << '\n';
    return;
  }
  std::ofstream file(opts.out, std::ios::trunc);
  file << boost::json::serialize(all) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + opts.out);
}

}  // namespace bench
