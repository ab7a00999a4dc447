#include "settle/testing.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <stdexcept>

#include "settle/error.hpp"

namespace settle::inline v0::testing {
namespace {

// splitmix64: small, and good enough to choose with.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class armed_fault final : public fault_points {
 public:
  armed_fault(std::size_t at, fault_kind kind) : at_(at), kind_(kind) {}

  void reached(std::string_view point) override {
    if (seen_++ != at_) return;
    fired_ = true;
    if (kind_ == fault_kind::kill) ::raise(SIGKILL);
    const auto text = "injected at " + std::string(point);
    const bool after = point.ends_with(".after");
    throw after ? error::with_unknown_outcome(errc::store_unavailable, text)
                : error(errc::store_unavailable, text);
  }

  bool fired() const { return fired_; }

 private:
  std::size_t at_;
  fault_kind kind_;
  std::size_t seen_ = 0;
  bool fired_ = false;
};

// Both return false if the scenario ended before it came to the fault point.
bool run_failing(const scenario& what, std::size_t at) {
  armed_fault fault(at, fault_kind::fail);
  try {
    what.run(fault);
  } catch (const error&) {
    // The scenario's caller saw the failure: allowed. recover() has to put it right.
  }
  return fault.fired();
}

bool run_killed(const scenario& what, std::size_t at) {
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

// On a server that others use as well a run may pass fewer points than the first one. That is the end of the
// exploration if every point from here on has had its turn before, at another place.
void require_all_struck(std::span<const std::string> points, std::size_t at) {
  const auto struck = points.first(at);
  for (const auto& point : points.subspan(at))
    if (std::ranges::find(struck, point) == struck.end())
      throw std::logic_error("fault point #" + std::to_string(at) + " " + point + " was not reached again");
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
    for (std::size_t at = 0; at < done.points.size(); ++at) {
      what.prepare();
      if (!(kind == fault_kind::fail ? run_failing(what, at) : run_killed(what, at))) {
        require_all_struck(done.points, at);
        break;
      }
      what.recover();
      what.check((kind == fault_kind::fail ? "fail at #" : "kill at #") + std::to_string(at) + " " +
                 done.points[at]);
      ++done.runs;
    }
  }
  return done;
}

}  // namespace settle::testing
