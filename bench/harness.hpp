// What the benches share: options, slices of measured work, ours and raw taken in turns, and the report.
//
// These machines are noisy, so a figure alone says little. Ours and the raw limit run alternately in small
// slices of the same run, many and short because a busy disk changes its speed tenfold within a second; what
// counts is the median of the ratios of neighbouring slices.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io_counts.hpp"

namespace bench {

using clock = std::chrono::steady_clock;

struct options {
  bool quick = false;                           // a smoke run: the figures mean nothing
  std::filesystem::path folder = "bench-data";  // emptied at the start; on the disk to be measured
  std::string out;                              // where the report goes as JSON; empty: standard output
  std::vector<std::string> role;                // --role and what follows: a child process of a bench
};

// Runs a bench's main part; gives the program's exit status. A child started with --role runs `child`.
int run_program(int argc, char** argv, const std::function<void(const options&)>& body,
                const std::function<void(const options&)>& child = {});

// Work that was measured: its duration, the processor time of the whole process, what it wrote.
struct slice {
  std::int64_t units = 0;
  double seconds = 0;
  double cpu_seconds = 0;
  io_counts io;
  double rate() const { return static_cast<double>(units) / seconds; }
};
slice measure(std::int64_t units, const std::function<void()>& work);

struct comparison {
  std::vector<slice> ours;
  std::vector<slice> raw;
};
// One slice of each per round, the first one alternating; one more round before to warm up.
comparison take_turns(int rounds, const std::function<slice()>& ours, const std::function<slice()>& raw);

double percentile(std::vector<double> values, double share);  // share: 0.5, 0.99, …

struct counter {
  std::string name;
  double value = 0;
};

struct report {
  std::string name;
  std::string what;  // one line for people
  std::string unit;  // of ours and raw
  bool lower_is_better = false;
  double ours = 0;
  std::optional<double> raw;
  std::optional<double> ratio;  // 1 is as good as raw, more is better
  std::string target;           // for people; empty: there is none
  std::optional<bool> reached;  // no target: nothing
  std::vector<counter> counters;
};

// Rates, their ratio, and per unit the commits, syncs, bytes and processor time of each. Who asks adds name,
// text and unit. A target is the ratio to be reached.
report compare(const comparison& turns, std::optional<double> target = std::nullopt);

void write(const options& opts, const std::vector<report>& reports);

}  // namespace bench
