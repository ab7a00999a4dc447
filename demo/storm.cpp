#include "storm.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "processes.hpp"
#include "roles.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"

namespace storm {
namespace {

using steady = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr auto pause_for = std::chrono::milliseconds(1800);  // the lease is 1 s
constexpr auto give_up_after = std::chrono::seconds(50);

// 1234567 → 1,234,567
std::string grouped(std::int64_t number) {
  const auto digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// On a terminal one line that moves; elsewhere a line a second.
class screen {
 public:
  void say(const std::string& line) {
    clear();
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  void progress(double at, std::int64_t committed, std::int64_t applied, int orders) {
    const auto text = fmt::format("{:5.1f} s  {} committed, {} applied of {}  {}", at, grouped(committed),
                                  grouped(applied), grouped(orders), bar(committed + applied, 2 * orders));
    if (!terminal_) {
      if (at - last_line_ >= 1) {
        last_line_ = at;
        say(text);
      }
      return;
    }
    fmt::print("\r\033[K{}", text);
    std::fflush(stdout);
    shown_ = true;
  }

  void clear() {
    if (shown_) fmt::print("\r\033[K");
    shown_ = false;
  }

 private:
  static std::string bar(std::int64_t done, std::int64_t all) {
    constexpr std::int64_t width = 24;
    const auto filled = all == 0 ? width : done * width / all;
    std::string out = "[";
    for (std::int64_t i = 0; i < width; ++i) out += i < filled ? '#' : '.';
    return out + "]";
  }

  bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  bool shown_ = false;
  double last_line_ = -1;
};

class storm {
 public:
  explicit storm(const settings& of) : of_(of) {
    prepare(of);
    orders_ = settle::sqlite::open(of.data + "/orders.db");
    warehouse_ = settle::sqlite::open(of.data + "/warehouse.db");
    broker_ = settle::sqlite::open_broker(of.data + "/broker.db");
    const auto due = make_strikes(of);
    strikes_.assign(due.begin(), due.end());
    const auto add = [&](role what, int count) {
      for (int i = 0; i < count; ++i) places_.push_back(std::make_unique<place_holder>(of_, what, i));
    };
    add(role::producer, producers);
    add(role::relay, relays);
    add(role::consumer, consumers);
  }

  int run() {
    screen_.say(
        fmt::format("Order storm, seed {}: {} orders from {} producers through {} relays to {} consumers, "
                    "all processes of their "
                    "own.\nOne message in ten is delivered twice, and {} times somebody is killed or stopped "
                    "past the lease.",
                    of_.seed, grouped(of_.orders), producers, relays, consumers, strikes_.size()));
    for (auto& place : places_) place->start();
    while (!done() && elapsed() < seconds(give_up_after)) {
      std::this_thread::sleep_for(look_every);
      look();
      strike_due();
      thaw_due();
      screen_.progress(elapsed().count(), committed_, applied_, of_.orders);
    }
    const auto took = elapsed().count();
    for (auto& frozen : frozen_) frozen.first->thaw();
    for (auto& place : places_)  // producers end by themselves; one that has not is out of time
      place->what() == role::producer ? place->kill() : place->stop();
    return verdict(took);
  }

 private:
  seconds elapsed() const { return steady::now() - started_; }

  bool done() const {
    const bool working = std::ranges::any_of(
        places_, [](const auto& place) { return place->what() == role::producer && place->running(); });
    return !working && strikes_.empty() && frozen_.empty() && applied_ >= of_.orders;
  }

  void look() {
    const auto highest = [](settle::database& db, const char* sql) {
      return db.read().execute(sql)[0][0].integer();
    };
    committed_ = highest(*orders_, "select coalesce(max(id), 0) from settle_effects");
    applied_ = highest(*warehouse_, "select coalesce(max(id), 0) from settle_effects");
    for (auto& place : places_)
      if (place->what() == role::producer) place->finished();
  }

  place_holder& at(role what, int index) {
    for (auto& place : places_)
      if (place->what() == what && place->index() == index) return *place;
    throw std::logic_error("no such process");
  }

  bool is_frozen(const place_holder& place) const {
    for (const auto& [frozen, until] : frozen_)
      if (frozen == &place) return true;
    return false;
  }

  void strike_due() {
    while (!strikes_.empty() && committed_ + applied_ >= strikes_.front().at_progress) {
      const auto next = strikes_.front();
      strikes_.pop_front();
      auto& victim = at(next.victim, next.index);
      if (!victim.running() || is_frozen(victim)) continue;  // a producer that has finished, a sleeper
      if (next.how == blow::kill) {
        victim.kill();
        victim.start();
        ++kills_;
        screen_.say(fmt::format("{:5.1f} s  killed {}, started it again", elapsed().count(), victim.name()));
      } else {
        victim.freeze();
        frozen_.emplace_back(&victim, steady::now() + pause_for);
        ++pauses_;
        screen_.say(fmt::format("{:5.1f} s  stopped {} past its lease", elapsed().count(), victim.name()));
      }
    }
  }

  void thaw_due() {
    while (!frozen_.empty() && steady::now() >= frozen_.front().second) {
      frozen_.front().first->thaw();
      screen_.say(fmt::format("{:5.1f} s  woke {}", elapsed().count(), frozen_.front().first->name()));
      frozen_.pop_front();
    }
  }

  // Messages that the broker holds more than once.
  std::int64_t extra_copies() {
    std::int64_t messages = 0;
    std::set<std::string> distinct;
    broker_->inspection()->log()->scan([](std::string_view, std::string_view) {},
                                       [&](const settle::kept_message& one) {
                                         ++messages;
                                         distinct.emplace(one.id);
                                       });
    return messages - static_cast<std::int64_t>(distinct.size());
  }

  int verdict(double took) {
    screen_.clear();
    const auto report =
        settle::verify({.services = {orders_.get(), warehouse_.get()}, .broker = broker_->inspection()});
    const auto copies = extra_copies();
    fmt::print("\nAfter {:.1f} s: {} processes killed, {} stopped past their lease.\n", took, kills_,
               pauses_);
    fmt::print("The broker held {} extra copies of messages{}.\n", grouped(copies),
               report.doubled == 0 ? "; every one was skipped" : "");
    for (const auto& finding : report.findings)
      fmt::print("  {} {} at {}: {}\n", finding.kind, finding.subject, finding.consumer, finding.detail);
    const bool complete = report.clean() && report.pending == 0 && report.committed == of_.orders;
    if (report.clean())
      fmt::print("Every order was {}applied exactly once, and each customer's orders in their order.\n",
                 report.pending == 0 ? "" : "either still on its way or ");
    if (report.pending > 0) fmt::print("{} orders are still on their way.\n", grouped(report.pending));
    if (report.ghosts + report.reordered > 0)
      fmt::print("{} applied without a commit, {} out of order.\n", grouped(report.ghosts),
                 grouped(report.reordered));
    fmt::print("{} committed, {} applied, {} lost, {} doubled\n", grouped(report.committed),
               grouped(report.applied), grouped(report.lost), grouped(report.doubled));
    return complete ? 0 : 1;
  }

  const settings& of_;
  std::unique_ptr<settle::database> orders_, warehouse_;
  std::unique_ptr<settle::broker> broker_;
  std::deque<strike> strikes_;
  std::vector<std::unique_ptr<place_holder>> places_;
  std::deque<std::pair<place_holder*, steady::time_point>> frozen_;
  screen screen_;
  steady::time_point started_ = steady::now();
  std::int64_t committed_ = 0, applied_ = 0;
  int kills_ = 0, pauses_ = 0;
};

}  // namespace

int run_storm(const settings& of) { return storm(of).run(); }

}  // namespace storm
