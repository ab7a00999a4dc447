// settle relay: publishes what is committed in the outbox, until it is stopped or nothing is waiting.
#include "settle/relay.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/destination.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/stop_signals.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "inspect/outbox.hpp"
#include "settle/metrics.hpp"

namespace settle::cli {
namespace {

// --once gives up when nothing has moved for this long. It is longer than a lease, so that the share of
// a relay that died is taken over first.
constexpr duration patience = std::chrono::seconds(30);
constexpr duration report_every = std::chrono::seconds(1);

// The relay, saying what it does, at most once per second. The idle loop comes by more often than that,
// so what was held back is told soon.
class talking_relay final : public service {
 public:
  enum class voice { quiet, text, json };

  talking_relay(relay& inner, const metrics& counters, voice with)
      : inner_(inner), counters_(counters), voice_(with) {}

  bool run_once(std::stop_token cancel) override {
    const bool more = inner_.run_once(std::move(cancel));
    if (env().now() >= next_report_) tell();
    return more;
  }
  void tell() {
    const auto fresh = total() - told_;
    if (fresh == 0 || voice_ == voice::quiet) return;
    if (voice_ == voice::json)
      fmt::print("{}\n",
                 boost::json::serialize(boost::json::object{{"published", fresh}, {"total", total()}}));
    else
      fmt::print("published {} (total {})\n", counted(fresh, "event"), grouped(total()));
    std::fflush(stdout);
    told_ += fresh;
    next_report_ = env().now() + report_every;
  }
  std::int64_t total() const { return counters_.value("settle_relay_published_total", {}); }

  std::string_view name() const override { return inner_.name(); }
  const environment& env() const override { return inner_.env(); }
  wakeup& arrivals() override { return inner_.arrivals(); }
  duration idle_wait() const override { return inner_.idle_wait(); }
  void leave() noexcept override { inner_.leave(); }
  void abandon() noexcept override { inner_.abandon(); }

 private:
  relay& inner_;
  const metrics& counters_;
  voice voice_;
  std::int64_t told_ = 0;
  timestamp next_report_{};
};

struct leave_at_end {
  service& what;
  ~leave_at_end() { what.leave(); }
};

// Until everything that was committed before the call is at the broker, whoever relays it: events that
// keep coming do not keep it running.
void drain(service& what, database& outbox, const stop_signals& signals) {
  const leave_at_end give_back_shares{what};
  const auto upto = inspect::read_numbers(outbox).highest;
  const auto at_first = inspect::read_backlog(outbox, upto);
  auto waiting = at_first.pending;
  auto moved_at = what.env().now();
  while (waiting > 0) {
    while (!signals.stop().stop_requested() && what.run_once(signals.cancel())) {
    }
    const auto now_waiting = inspect::read_backlog(outbox, upto).pending;
    if (now_waiting != std::exchange(waiting, now_waiting)) moved_at = what.env().now();
    if (waiting == 0) break;
    const auto still = counted(waiting, "event") + (waiting == 1 ? " still waits" : " still wait");
    if (signals.stop().stop_requested()) throw error(errc::cancelled, still);
    if (const auto blocked = inspect::read_blocked(outbox); !blocked.empty())
      throw error(errc::destination_unavailable, fmt::format("{}: {}", still, blocked.front().last_error));
    if (what.env().now() - moved_at > patience)
      throw error(errc::store_busy, still + ", and the relay that owns them does not move");
    what.arrivals().wait(what.idle_wait(), signals.stop());
  }
  if (const auto more = inspect::read_backlog(outbox, upto).failed - at_first.failed; more > 0)
    throw error(errc::message_rejected,
                fmt::format("the broker rejects {}; see `settle outbox failed`", counted(more, "event")));
}

int relay_once(context& shared, talking_relay& quiet, database& outbox, const stop_signals& signals) {
  const auto note = [&] {
    if (quiet.total() > 0) shared.note_done(fmt::format("published {}", counted(quiet.total(), "event")));
  };
  try {
    drain(quiet, outbox, signals);
  } catch (...) {
    note();
    throw;
  }
  note();
  const auto total = quiet.total();
  if (shared.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"published", total}}));
  else if (total == 0)
    fmt::print("nothing to publish\n");
  else
    fmt::print("published {}\n", counted(total, "event"));
  return exit_ok;
}

int relay_until_stopped(context& shared, talking_relay& talking, const database& outbox,
                        const stop_signals& signals) {
  if (!shared.json) {
    fmt::print("relaying {} to {}; Ctrl-C stops after the batch under way\n", for_terminal(outbox.name()),
               for_terminal(shared.broker_path()));
    std::fflush(stdout);
  }
  settle::run(talking, signals.stop(), signals.cancel());
  shared.note_done(fmt::format("published {}", counted(talking.total(), "event")));
  talking.tell();
  if (shared.json)
    fmt::print("{}\n",
               boost::json::serialize(boost::json::object{{"stopped", true}, {"total", talking.total()}}));
  else
    fmt::print("stopped; {} published\n", counted(talking.total(), "event"));
  return exit_ok;
}

int relay_command(context& shared, bool once) {
  const stop_signals signals;
  metrics counters;
  environment env;
  env.counters = &counters;
  require_distinct(shared.service_path(), shared.broker_path());
  const auto* service = shared.chosen_service();
  const auto outbox = open_existing(shared.service_path(), file_kind::service, {.env = env});
  destination brokers(shared, env);
  relay inner(*outbox, brokers.publishing(), service == nullptr ? relay_options() : service->relay);
  using voice = talking_relay::voice;
  talking_relay talking(inner, counters, once ? voice::quiet : shared.json ? voice::json : voice::text);
  return once ? relay_once(shared, talking, *outbox, signals)
              : relay_until_stopped(shared, talking, *outbox, signals);
}

}  // namespace

void add_relay(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("relay",
                        "Publish committed events to the broker, until SIGINT or SIGTERM.\n"
                        "Any number of relays may run at once; each takes a part of the keys.");
  const auto once = std::make_shared<bool>(false);
  command
      .add_flag("--once", *once,
                "End when everything committed so far is published;\nexit code 3 if it cannot be")
      .option_text(" ");
  describe_command(command,
                   "  settle relay                 run until Ctrl-C\n"
                   "  settle relay --once          in a script or a timer");
  command.callback(
      [&shared, once] { shared.run = [&shared, once] { return relay_command(shared, *once); }; });
}

}  // namespace settle::cli
