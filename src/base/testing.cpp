#include "settle/testing.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <stdexcept>
#include <utility>

#include "settle/error.hpp"

namespace settle::inline v0::testing {
namespace {

// splitmix64: small, and good enough to choose with.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// One pass of a fault point. Counted by its name: on a server that others use as well there may be a few more
// passes of some points, or fewer, from run to run.
struct pass {
  std::string point;
  int number = 0;
};

class armed_fault final : public fault_points {
 public:
  armed_fault(pass at, fault_kind kind) : at_(std::move(at)), kind_(kind) {}

  void reached(std::string_view point) override {
    if (point != at_.point || seen_++ != at_.number) return;
    fired_ = true;
    if (kind_ == fault_kind::kill) ::raise(SIGKILL);
    const auto text = "injected at " + std::string(point);
    const bool after = point.ends_with(".after");
    throw after ? error::with_unknown_outcome(errc::store_unavailable, text)
                : error(errc::store_unavailable, text);
  }

  bool fired() const { return fired_; }

 private:
  pass at_;
  fault_kind kind_;
  int seen_ = 0;
  bool fired_ = false;
};

// Both return false if the scenario ended before it came to the fault point.
bool run_failing(const scenario& what, const pass& at) {
  armed_fault fault(at, fault_kind::fail);
  try {
    what.run(fault);
  } catch (const error&) {
    // The scenario's caller saw the failure: allowed. recover() has to put it right.
  }
  return fault.fired();
}

bool run_killed(const scenario& what, const pass& at) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::logic_error("fork failed");
  if (child == 0) {
    armed_fault fault(at, fault_kind::kill);
    try {
      what.run(fault);
    } catch (...) {
    }
    ::_exit(3);  // it should have died
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

std::vector<pass> passes_of(const std::vector<std::string>& points) {
  std::vector<pass> all;
  std::map<std::string, int> counts;
  for (const auto& point : points) all.push_back({point, counts[point]++});
  return all;
}

}  // namespace

std::uint64_t seeded_random::next() { return mix(state_ += 0x9e3779b97f4a7c15); }

exploration explore(const scenario& what) {
  exploration done;
  {
    fault_recorder recorder;
    what.prepare();
    what.run(recorder);
    what.recover();
    what.check("undisturbed");
    done.points = recorder.points;
    done.runs = 1;
  }
  if (done.points.empty()) throw std::logic_error("the scenario reaches no fault point");
  for (const auto kind : {fault_kind::fail, fault_kind::kill}) {
    for (const auto& at : passes_of(done.points)) {
      const auto where = (kind == fault_kind::fail ? "fail at " : "kill at ") + at.point + " #" +
                         std::to_string(at.number + 1);
      what.prepare();
      const bool struck = kind == fault_kind::fail ? run_failing(what, at) : run_killed(what, at);
      if (!struck && at.number == 0) throw std::logic_error(where + ": not reached again");
      what.recover();
      what.check(struck ? where : "undisturbed");
      ++done.runs;
    }
  }
  return done;
}

}  // namespace settle::testing
