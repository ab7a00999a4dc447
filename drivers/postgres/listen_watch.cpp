#include "postgres/listen_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/if_possible.hpp"
#include "postgres/exchange.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

using namespace std::chrono_literals;

constexpr duration between_tries = 1s;

struct free_notification {
  void operator()(PGnotify* one) const noexcept { PQfreemem(one); }
};

}  // namespace

listen_watch::listen_watch(const settings& to, const options& with, std::shared_ptr<wake_list> watchers)
    : to_(to), with_(with), watchers_(std::move(watchers)) {
  event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_ < 0) throw error(errc::store_unavailable, "no file descriptor left to watch " + to_.name);
  watchers_->add(event_);
}

listen_watch::~listen_watch() {
  watchers_->remove(event_);
  ::close(event_);
}

// True when it has just begun to listen.
bool listen_watch::try_listen(duration at_most, const std::stop_token& stop) {
  if (!with_.prepared_statements || steady::now() < next_try_) return false;
  const limit within{steady::now() + std::min(with_.connect_timeout, std::max(at_most, between_tries)), stop};
  try {
    conn_ = connect(to_, within, wait_, with_.env);
    pipeline line(conn_.get(), wait_);
    line.run("listen settle_wake", {});
    check_statements(round_trip(conn_.get(), line, within), line, to_.name);
    return true;
  } catch (const std::exception& e) {
    close_now(conn_);
    next_try_ = steady::now() + between_tries;
    if_possible(
        [&] { with_.env.log->write(log_level::debug, "postgres_listen_failed", {{"error", e.what()}}); });
    return false;
  }
}

// True if there was something from others, or the line is lost and something may have been missed.
bool listen_watch::read_notifications() {
  const bool alive = PQconsumeInput(conn_.get()) != 0;
  bool found = !alive;
  while (auto one = std::unique_ptr<PGnotify, free_notification>(PQnotifies(conn_.get())))
    found = found || one->be_pid != watchers_->own_backend;
  if (!alive) close_now(conn_);
  return found;
}

void listen_watch::doze_until(steady::time_point then, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> ready{pollfd{event_, POLLIN, 0},
                                pollfd{conn_ ? PQsocket(conn_.get()) : -1, POLLIN, 0}};
    const auto left = std::max<steady::duration>(then - steady::now(), 0ns);
    const timespec limit{left / 1s, (left % 1s) / 1ns};
    if (::ppoll(ready.data(), ready.size(), &limit, nullptr) <= 0) return;
    if (ready[0].revents != 0) return;
    if (ready[1].revents != 0 && read_notifications()) return;
  }
}

void listen_watch::wait(duration at_most, std::stop_token stop) {
  const auto then = steady::now() + at_most;
  // What was committed before it listened must be looked for now.
  if (!conn_ && try_listen(at_most, stop)) return;
  const std::stop_callback on_stop(stop, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto unused = ::write(event_, &one, sizeof one);
  });
  doze_until(then, stop);
  std::uint64_t wakes;
  [[maybe_unused]] const auto ignored = ::read(event_, &wakes, sizeof wakes);
}

}  // namespace settle::inline v0::postgres
