#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "base/if_possible.hpp"
#include "base/log_limit.hpp"
#include "http/answer.hpp"
#include "http/session.hpp"
#include "http/shared.hpp"
#include "http/sockets.hpp"
#include "settle/error.hpp"
#include "settle/http_server.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::uint64_t listener_number = poller::wake_number - 1;
constexpr std::size_t read_bytes_max = std::size_t{64} * 1024;
constexpr int accepts_per_round = 64;  // so that a storm of connections does not starve those that are there
constexpr auto flush_every = std::chrono::milliseconds(100);
constexpr auto sweep_at_most_every = std::chrono::milliseconds(5);
constexpr auto accept_pause = std::chrono::milliseconds(100);

server_options checked(const server_options& given) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw error(errc::invalid_argument, what);
  };
  require(given.worker_threads >= 1 && given.worker_threads <= 1024, "worker_threads must be 1 to 1,024");
  require(given.connections_max >= 1, "connections_max must be at least 1");
  require(given.header_bytes_max >= 64 && given.header_bytes_max <= 16 * 1024 * 1024,
          "header_bytes_max must be 64 bytes to 16 MiB");
  require(given.transfer_bytes_per_second_min >= 1, "transfer_bytes_per_second_min must be at least 1");
  for (const auto limit : {given.handler_time_max, given.first_byte_time_max, given.idle_time_max,
                           given.header_time_max, given.transfer_grace})
    require(limit > duration(0), "a time limit of the server is not positive");
  require(fault_of({200, given.answer_headers, {}}).empty(), "answer_headers has one that cannot be sent");
  return given;
}

struct draining {
  enum class phase { none, asked, under_way, over };
  phase at = phase::none;
  steady::time_point deadline;
  bool ended_by_itself = true;
};

}  // namespace

class server::state {
 public:
  state(router routes, const server_options& options)
      : options_(checked(options)),
        routes_(std::move(routes)),
        listener_(listen_on(options_.address, options_.port)),
        port_(listener_.port),
        counts_(options_.env),
        jobs_(options_.env, [this] { poller_.wake(); }),
        pool_({options_.worker_threads, options_.queue_max, std::numeric_limits<std::size_t>::max()}),
        with_{options_,
              routes_,
              pool_,
              jobs_,
              counts_,
              {options_.request_line_bytes_max, options_.header_bytes_max, options_.header_count_max},
              std::vector<char>(read_bytes_max)} {
    if (!poller_.add(listener_.socket.get(), listener_number, EPOLLIN))
      throw error(errc::listen_failed, "the system has no memory to wait for connections");
    pool_.start_all();  // a server that cannot have its threads is not to be taken for one that works
    thread_ = std::thread([this] { run(); });
  }

  ~state() {
    drain(duration(0));
    thread_.join();
    auto withdrawn = pool_.withdraw(jobs_);
    for (const auto& one : routes_.groups()) withdrawn.append(one->inside().withdraw(jobs_));
    jobs_.wait_for_all(withdrawn.size());
  }

  const std::string& address() const { return options_.address; }
  std::uint16_t port() const { return port_; }

  void replace(router routes) {
    routes_.replace(std::move(routes));
    poller_.wake();  // or the old ones would stay until the next request
  }

  bool drain(duration at_most) {
    std::unique_lock lock(mutex_);
    const auto deadline = steady::now() + at_most;
    if (drain_.at == draining::phase::none) drain_ = {draining::phase::asked, deadline};
    drain_.deadline = std::min(drain_.deadline, deadline);
    poller_.wake();
    drained_.wait(lock, [&] { return drain_.at == draining::phase::over; });
    return drain_.ended_by_itself;
  }

 private:
  // Nothing gets out of here: what cannot be done for want of memory is done without, or later. Who is
  // concerned is told 503 (session::on_failure).
  void run() noexcept {
    if_possible([&] { read_clock(); });
    while (!is_drained()) {
      const auto events = poller_.wait(patience());
      if_possible([&] { read_clock(); });
      for (const auto& one : events) on_event(one.data.u64, one.events);
      if (accepts_again_at_ && with_.now >= *accepts_again_at_) resume_accepting();
      if (with_.now >= next_sweep_) sweep();
      if (with_.now >= next_flush_) flush();
    }
    if_possible([&] { counts_.flush(); });
    const std::scoped_lock lock(mutex_);
    drain_.at = draining::phase::over;
    drained_.notify_all();
  }

  void read_clock() {
    with_.now = steady::now();
    const auto second = std::chrono::floor<std::chrono::seconds>(options_.env.now());
    if (second == second_) return;
    with_.date = to_date(second);
    second_ = second;
  }

  // How long nothing has to be done if nothing comes.
  std::optional<duration> patience() const {
    auto until = next_sweep_;
    if (counts_.has_counts()) until = std::min(until, next_flush_);
    if (accepts_again_at_) until = std::min(until, *accepts_again_at_);
    if (until == steady::time_point::max()) return std::nullopt;
    return std::chrono::ceil<duration>(until - with_.now);
  }

  void on_event(std::uint64_t number, std::uint32_t events) {
    if (number == poller::wake_number) return on_wake();
    if (number == listener_number) return accept_some();
    auto* const found = session_of(number);
    if (found == nullptr) return;  // closed in this round
    change(number, *found, [&](session& one) {
      if ((events & (EPOLLERR | EPOLLHUP)) != 0) one.on_hang_up();
      if (!one.is_closed() && (events & EPOLLOUT) != 0) one.on_writable();
      if (!one.is_closed() && (events & EPOLLIN) != 0) one.on_readable();
    });
  }

  // Lets something happen to a session.
  template <class What>
  void change(std::uint64_t number, session& which, const What& what) {
    const auto before = which.interest();
    try {
      what(which);
    } catch (const std::exception& e) {
      which.on_failure();
      note_failure(e.what());
    } catch (...) {
      which.on_failure();
    }
    look_after(number, which, before);
  }

  void note_failure(const char* why) {
    if (!failures_.ask(options_.env.now())) return;
    if_possible(
        [&] { options_.env.log->write(log_level::error, "http_connection_failed", {{"error", why}}); });
  }

  void on_wake() {
    poller_.woken();
    routes_.in_force();
    auto answered = jobs_.take_answered();
    while (const auto one = answered.pop()) {
      with_.bodies_bytes -= one->held_bytes;
      auto* const found = session_of(one->session);
      if (found != nullptr) change(one->session, *found, [&](session& its) { its.on_answer(*one); });
    }
    follow_drain();
  }

  // After anything has happened to a session.
  void look_after(std::uint64_t number, session& which, std::uint32_t interest_before) {
    if (which.is_closed()) return forget(number);
    if (which.interest() != interest_before) poller_.change(which.descriptor(), number, which.interest());
    next_sweep_ = std::min(next_sweep_, std::max(which.deadline(), last_sweep_ + sweep_at_most_every));
  }

  void accept_some() {
    for (int n = 0; n < accepts_per_round; ++n) {
      try {
        if (!accept_one()) return;
      } catch (const std::exception& e) {  // no memory: it is closed, and the next one may fare better
        note_failure(e.what());
      }
    }
  }

  // False: nobody else waits, or nobody else can be taken now.
  bool accept_one() {
    accepted next;
    const auto outcome = accept_from(listener_, next);
    if (outcome == accept_outcome::exhausted) pause_accepting();
    if (outcome != accept_outcome::taken) return false;
    if (open_ >= options_.connections_max) make_room();
    try {
      if (open_ < options_.connections_max)
        open(next);
      else
        turn_away(next.socket);
    } catch (...) {
      say_unavailable(next.socket.get());
      throw;
    }
    return true;
  }

  // Who has asked for nothing yet, or is answered, goes before somebody new is turned away; the oldest first.
  // So slow clients cannot keep others out, however many they are.
  void make_room() {
    std::optional<session::standing> least;
    std::uint64_t number = 0;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      const auto* const one = slots_[slot].used.get();
      const auto standing = one == nullptr ? std::nullopt : one->dispensable();
      if (!standing || (least && *least <= *standing)) continue;
      least = standing;
      number = std::uint64_t{slots_[slot].generation} << 32 | slot;
    }
    if (!least) return;
    change(number, *session_of(number), [](session& one) { one.give_way(); });
  }

  // Whoever is beyond the limit costs one write; it may never see it if it has already sent much.
  void turn_away(const descriptor& socket) {
    counts_.refused_connection();
    auto answer = problem(503, "connections_full", "too many connections; try again");
    answer.headers.set("Retry-After", "1");
    std::string text;
    append_head(text, answer, {true, false, with_.date, &options_.answer_headers});
    text += answer.body;
    ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(socket.get(), SHUT_WR);
    ::recv(socket.get(), with_.buffer.data(), with_.buffer.size(), MSG_DONTWAIT);
  }

  void open(accepted& next) {
    if (free_.empty()) {
      free_.reserve(slots_.size() + 1);  // so that forget() needs no memory
      slots_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const auto slot = free_.back();
    auto& place = slots_[slot];
    const auto number = std::uint64_t{place.generation + 1} << 32 | slot;
    const int socket = next.socket.get();
    auto made = std::make_unique<session>(socket, number, std::move(next.remote), with_);
    next.socket.release();  // the session closes it
    if (!poller_.add(socket, number, made->interest())) return;
    free_.pop_back();
    ++place.generation;
    place.used = std::move(made);
    ++open_;
    look_after(number, *place.used, place.used->interest());
  }

  session* session_of(std::uint64_t number) {
    const auto slot = static_cast<std::uint32_t>(number);
    if (slot >= slots_.size() || slots_[slot].generation != number >> 32) return nullptr;
    return slots_[slot].used.get();
  }

  void forget(std::uint64_t number) {
    const auto slot = static_cast<std::uint32_t>(number);
    slots_[slot].used.reset();
    free_.push_back(slot);
    --open_;
  }

  // Without file descriptors an accept fails at once, and again, and again.
  void pause_accepting() {
    poller_.remove(listener_.socket.get());
    accepts_again_at_ = with_.now + accept_pause;
    if (!warnings_.ask(options_.env.now())) return;
    if_possible([&] {
      options_.env.log->write(log_level::warning, "http_accept_failed",
                              {{"advice", "no file descriptors; lower connections_max or raise the limit"}});
    });
  }

  void resume_accepting() {
    accepts_again_at_.reset();
    if (listener_.socket && !poller_.add(listener_.socket.get(), listener_number, EPOLLIN))
      accepts_again_at_ = with_.now + accept_pause;
  }

  template <class Each>
  void for_each_session(const Each& each) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      auto* const one = slots_[slot].used.get();
      if (one == nullptr) continue;
      change(std::uint64_t{slots_[slot].generation} << 32 | slot, *one, each);
    }
  }

  void sweep() {
    last_sweep_ = with_.now;
    next_sweep_ = steady::time_point::max();
    for_each_session([&](session& one) {
      if (with_.now >= one.deadline()) one.on_deadline();
    });
    follow_drain();
  }

  void flush() {
    if_possible([&] { counts_.flush(); });
    next_flush_ = with_.now + flush_every;
  }

  void follow_drain() {
    std::unique_lock lock(mutex_);
    if (drain_.at == draining::phase::none) return;
    const bool begins = drain_.at == draining::phase::asked;
    drain_.at = draining::phase::under_way;
    const auto deadline = drain_.deadline;
    lock.unlock();
    if (begins) begin_drain();
    if (with_.now >= deadline)
      cancel_all();
    else
      next_sweep_ = std::min(next_sweep_, deadline);
  }

  void begin_drain() {
    with_.draining = true;
    if (!accepts_again_at_) accept_some();  // whoever was already connecting is still served
    poller_.remove(listener_.socket.get());
    listener_.socket.close();
    for_each_session([](session& one) { one.drain(); });
  }

  void cancel_all() {
    bool cut = false;
    for_each_session([&](session& one) {
      cut = cut || one.is_busy();
      one.cancel();
    });
    const std::scoped_lock lock(mutex_);
    drain_.ended_by_itself = drain_.ended_by_itself && !cut;
  }

  bool is_drained() const { return with_.draining && open_ == 0; }

  struct place {
    std::uint32_t generation = 0;
    std::unique_ptr<session> used;
  };

  server_options options_;
  routing routes_;
  listener listener_;
  std::uint16_t port_;
  poller poller_;
  traffic counts_;
  job_source jobs_;
  workers pool_;
  surroundings with_;
  std::vector<place> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t open_ = 0;
  std::chrono::sys_seconds second_{};
  steady::time_point last_sweep_{};
  steady::time_point next_sweep_ = steady::time_point::max();
  steady::time_point next_flush_{};
  std::optional<steady::time_point> accepts_again_at_;
  log_limit warnings_{1};
  log_limit failures_{1};

  std::mutex mutex_;
  std::condition_variable drained_;
  draining drain_;
  std::thread thread_;
};

server::server(router routes, const server_options& options)
    : state_(std::make_unique<state>(std::move(routes), options)) {}
server::~server() = default;
const std::string& server::address() const { return state_->address(); }
std::uint16_t server::port() const { return state_->port(); }
void server::replace(router routes) { state_->replace(std::move(routes)); }
bool server::drain(duration at_most) { return state_->drain(at_most); }

}  // namespace settle::inline v0::http
