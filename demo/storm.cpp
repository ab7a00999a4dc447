#include "storm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "processes.hpp"
#include "screen.hpp"
#include "services.hpp"
#include "stage.hpp"
#include "verdict.hpp"

namespace storm {
namespace {

using steady = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr auto give_up_after = std::chrono::seconds(50);

// How the storm goes: longer where the leases of a file are, and with a file for as long as there is
// progress.
struct timing {
  std::chrono::milliseconds look_every;
  std::chrono::milliseconds pause_for;
  bool ends_without_progress;
};

timing timing_of(const settings& of) {
  // A server takes somebody for dead who was silent for two heartbeats.
  const std::chrono::milliseconds past_lease(of.broker.empty() ? 1800 : 3500);
  if (of.config.empty()) return {std::chrono::milliseconds(50), past_lease, !of.broker.empty()};
  return {std::chrono::milliseconds(200), read_services(of.config).lease_max * 18 / 10, true};
}

class storm {
 public:
  explicit storm(const settings& of) : of_(of), timing_(timing_of(of)), stage_(of) {
    const auto due = has_file() ? make_service_strikes(of) : make_strikes(of);
    strikes_.assign(due.begin(), due.end());
    const auto add = [&](role what, int count) {
      for (int i = 0; i < count; ++i) places_.push_back(std::make_unique<place_holder>(of_, what, i));
    };
    add(role::producer, producers);
    add(role::relay, relays);
    add(role::consumer, consumers);
    if (has_file())
      for (int i = 0; i < relays; ++i) write_daemon_file(of_, i, 0);
  }

  int run() {
    screen_.say(announcement());
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    of_.began_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    for (auto& place : places_) place->start();
    while (!done() && !is_out_of_time()) {
      std::this_thread::sleep_for(timing_.look_every);
      look();
      strike_due();
      return_due();
      screen_.progress(elapsed().count(), stage_.committed(), stage_.applied(), of_.orders);
    }
    const auto took = elapsed().count();
    for (auto& one : absent_) one.place->thaw();
    for (auto& place : places_)  // producers end by themselves; one that has not is out of time
      place->what() == role::producer ? place->kill() : place->stop();
    screen_.clear();
    const int code = std::max(give_verdict(of_, stage_, dealt_, took), refused_files());
    if (code == 0) stage_.clean_up();
    return code;
  }

 private:
  // Somebody who is away until then: stopped, or killed and not started again yet.
  struct absentee {
    place_holder* place;
    steady::time_point until;
  };

  bool has_file() const { return !of_.config.empty(); }
  seconds elapsed() const { return steady::now() - started_; }
  std::int64_t progress() const { return stage_.committed() + stage_.applied(); }

  std::string announcement() const {
    if (has_file())
      return fmt::format(
          "Order storm, seed {}: {} orders of the services in {}, from {} producers through {} daemons "
          "to {} consumers, all processes of their own.\n{} times somebody is killed, stopped past the "
          "lease or told to read a changed file.",
          of_.seed, grouped(of_.orders), of_.config, producers, relays, consumers, strikes_.size());
    return fmt::format(
        "Order storm, seed {}: {} orders from {} producers through {} relays to {} consumers, "
        "all processes of their "
        "own.\nOne message in ten is delivered twice, and {} times somebody is killed or stopped "
        "past the lease.",
        of_.seed, grouped(of_.orders), producers, relays, consumers, strikes_.size());
  }

  bool done() const {
    const bool working = std::ranges::any_of(
        places_, [](const auto& place) { return place->what() == role::producer && place->running(); });
    return !working && strikes_.empty() && absent_.empty() && stage_.applied() >= of_.orders;
  }

  bool is_out_of_time() const {
    return steady::now() - (timing_.ends_without_progress ? moved_ : started_) > give_up_after;
  }

  void look() {
    const auto before = progress();
    stage_.look();
    if (progress() != before) moved_ = steady::now();
    for (auto& place : places_)
      if (!is_absent(*place)) place->finished();
  }

  place_holder& at(role what, int index) {
    for (auto& place : places_)
      if (place->what() == what && place->index() == index) return *place;
    throw std::logic_error("no such process");
  }

  bool is_absent(const place_holder& place) const {
    return std::ranges::any_of(absent_, [&](const absentee& one) { return one.place == &place; });
  }

  void say(const std::string& what, const place_holder& who) {
    screen_.say(fmt::format("{:5.1f} s  {}", elapsed().count(), fmt::format(fmt::runtime(what), who.name())));
  }

  void strike_due() {
    while (!strikes_.empty() && progress() >= strikes_.front().at_progress) {
      const auto next = strikes_.front();
      if (next.how == blow::reload) {
        if (!reload(next.index)) return;  // no daemon is there; the next one that returns
        strikes_.pop_front();
        continue;
      }
      strikes_.pop_front();
      auto& victim = at(next.victim, next.index);
      if (!victim.running() || is_absent(victim)) continue;  // a producer that has finished, a sleeper
      if (next.how == blow::kill)
        kill(victim);
      else
        pause(victim);
    }
  }

  // A daemon stays away past its lease, so that the other one takes over.
  void kill(place_holder& victim) {
    victim.kill();
    ++dealt_.kills;
    if (has_file() && victim.what() == role::relay) {
      absent_.push_back({&victim, steady::now() + timing_.pause_for});
      say("killed {}, the other one takes over", victim);
      return;
    }
    victim.start();
    say("killed {}, started it again", victim);
  }

  void pause(place_holder& victim) {
    victim.freeze();
    absent_.push_back({&victim, steady::now() + timing_.pause_for});
    ++dealt_.pauses;
    say("stopped {} past its lease", victim);
  }

  bool reload(int index) {
    if (is_absent(at(role::relay, index))) index = (index + 1) % relays;
    auto& daemon = at(role::relay, index);
    if (is_absent(daemon)) return false;
    write_daemon_file(of_, index, ++dealt_.reloads);
    daemon.reload();
    say("told {} to read its file, which has changed", daemon);
    return true;
  }

  void return_due() {
    while (!absent_.empty() && steady::now() >= absent_.front().until) {
      auto& place = *absent_.front().place;
      absent_.pop_front();
      const bool slept = place.running();
      slept ? place.thaw() : place.start();
      say(slept ? "woke {}" : "started {} again", place);
    }
  }

  // Every file that we write is a good one. 1 if a daemon did not think so.
  int refused_files() {
    int refused = 0;
    for (const auto& place : places_) {
      std::ifstream log(place->log_path());
      for (std::string line; has_file() && std::getline(log, line);)
        if (line.find(" reload_refused ") != std::string::npos) {
          fmt::print("{}: {}\n", place->name(), line);
          refused = 1;
        }
    }
    return refused;
  }

  settings of_;
  timing timing_;
  stage stage_;
  std::deque<strike> strikes_;
  std::vector<std::unique_ptr<place_holder>> places_;
  std::deque<absentee> absent_;
  screen screen_;
  steady::time_point started_ = steady::now();
  steady::time_point moved_ = started_;
  blows_dealt dealt_;
};

}  // namespace

int run_storm(const settings& of) { return storm(of).run(); }

}  // namespace storm
