#include "http/session.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/if_possible.hpp"
#include "http/answer.hpp"
#include "http/shared.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::size_t small_body_bytes_max = 4096;  // cheaper to copy than to send as a piece of its own
constexpr std::size_t out_bytes_max =
    std::size_t{64} * 1024;  // answers of pipelined requests go out together
constexpr std::size_t kept_bytes_max = std::size_t{16} * 1024;  // what a buffer may keep between two requests
constexpr auto linger_time = std::chrono::seconds(2);
constexpr std::size_t linger_bytes_max = std::size_t{1} * 1024 * 1024;

// How long a connection that has had an answer may be sure of its place before the next request.
constexpr auto idle_time_min = std::chrono::seconds(1);
void release_if_large(std::string& text) {
  if (text.capacity() > kept_bytes_max) std::string().swap(text);
}

}  // namespace

void say_unavailable(int descriptor) noexcept {
  constexpr std::string_view text =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

session::session(int descriptor, std::uint64_t id, std::string remote, surroundings& with)
    : descriptor_(descriptor),
      id_(id),
      remote_(std::move(remote)),
      with_(with),
      parser_(with.parsing),
      since_(with.now) {
  parser_.begin(request_);
  with_.counts.opened();
}

session::~session() { close(); }

void session::on_readable() {
  if (stage_ == stage::handling || blocked_) {
    reads_paused_ = true;
    return;
  }
  const auto got = ::recv(descriptor_, with_.buffer.data(), with_.buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close();
  const std::string_view fresh(with_.buffer.data(), static_cast<std::size_t>(got));
  if (stage_ == stage::lingering) {
    lingered_bytes_ += fresh.size();
    if (lingered_bytes_ > linger_bytes_max) close();
    return;
  }
  if (in_.empty()) return pump(fresh);
  auto all = std::exchange(in_, {});
  all += fresh;
  pump(all);
}

void session::on_writable() {
  flush();
  if (is_closed() || blocked_ || !is_reading()) return;
  reads_paused_ = false;
  pump(std::exchange(in_, {}));
}

void session::on_answer(job& answered) {
  if (job_.get() != &answered) return;
  job_.reset();
  request_ = std::move(answered.asked);
  respond(std::move(answered.answer), !framing_.keep_alive);
  // A large body is sent after all of out_, so nothing may be put there before it has gone.
  if (!large_body_.empty() || blocked_ || !is_reading()) flush();
  if (is_closed() || blocked_ || !is_reading()) return;
  reads_paused_ = false;
  pump(std::exchange(in_, {}));
}

// Takes whole requests as long as they can be answered here and the answers are taken.
void session::pump(std::string_view bytes) {
  const bool was_idle = is_idle();
  if (was_idle && !bytes.empty()) since_ = with_.now;
  while (is_reading() && !blocked_) {
    const auto made = parser_.feed(bytes);
    bytes.remove_prefix(made.consumed);
    count_body();
    if (!is_reading()) break;
    if (made.refused)
      refuse(made.refused);
    else if (made.reached == request_parser::step::more)
      break;
    else if (made.reached == request_parser::step::head)
      on_head();
    else
      on_request();
    if (out_.size() > out_bytes_max || !large_body_.empty()) flush();
    if (is_closed()) return;
  }
  if (is_reading() || stage_ == stage::handling) in_.assign(bytes);
  flush();
}

void session::count_body() {
  const auto fresh = request_.body.size() - counted_bytes_;
  if (fresh == 0) return;
  with_.bodies_bytes += fresh;
  counted_bytes_ += fresh;
  if (with_.bodies_bytes > with_.options.bodies_bytes_max)
    refuse({503, "memory_full", "too many large requests at once; try again"});
}

void session::on_head() {
  asked_at_ = since_ = with_.now;
  stage_ = stage::body;
  to_ = {};
  if (const auto refused = read_framing(parser_.version(), request_.headers, framing_))
    return refuse(refused);
  if (const auto refused = split_target(request_)) return refuse(refused);
  const auto& routes = with_.routes.in_force();
  if (const auto refused = routes->find(request_, to_)) return refuse(refused);
  to_.of = routes;
  const auto bytes_max = to_.found == nullptr
                             ? with_.options.body_bytes_max
                             : to_.found->options.body_bytes_max.value_or(with_.options.body_bytes_max);
  parser_.limit_body(bytes_max);
  if (framing_.content_length > bytes_max) return refuse({413, "body_too_large", "the body is too large"});
  if (to_.found == nullptr && framing_.has_body()) return on_request();
  if (framing_.expects_continue) out_.append("HTTP/1.1 100 Continue\r\n\r\n");
}

void session::on_request() {
  if (to_.path == nullptr) return respond(not_found(request_), !framing_.keep_alive || framing_.has_body());
  if (to_.found == nullptr)
    return respond(not_allowed(request_, *to_.path), !framing_.keep_alive || framing_.has_body());
  request_.trace = read_trace(request_.headers);
  request_.remote_address = remote_;
  if (!to_.found->options.quick) return hand_over();
  auto answer = answer_of(to_.found->what, request_, with_.options.env, *to_.path);
  respond(std::move(answer), !framing_.keep_alive);
}

void session::hand_over() {
  // A handler that shows the counters shows those of the requests before it. Requests that are answered
  // together are many, and show none.
  if (!to_.found->together) with_.counts.flush();
  auto made = std::make_shared<job>();
  made->asked = std::move(request_);
  request_.method = made->asked.method;  // the answer's form depends on it
  made->asked.cancelled = made->cancel.get_token();
  made->to = to_;
  made->from = &with_.jobs;
  made->session = id_;
  made->body_bytes = counted_bytes_;
  // What a group holds counts there: one that is stuck must not use up the room for everybody's bodies.
  auto* const group = to_.found->options.workers.get();
  if (group == nullptr) made->held_bytes = counted_bytes_;
  job_ = made;
  stage_ = stage::handling;
  since_ = with_.now;
  const auto refused = (group == nullptr ? with_.pool : group->inside()).give(std::move(made));
  if (!refused) {
    if (group != nullptr) with_.bodies_bytes -= counted_bytes_;
    counted_bytes_ = 0;
    return;
  }
  request_ = std::move(job_->asked);
  job_.reset();
  with_.counts.refused_request(refused.code);
  auto answer = problem(refused.status, refused.code, refused.detail, request_.path);
  answer.headers.set("Retry-After", "1");
  respond(std::move(answer), !framing_.keep_alive);
}

// An answer after which nobody can tell where the next request begins, or whether there is one.
void session::refuse(const refusal& why) {
  with_.counts.refused_request(why.code);
  if (stage_ == stage::head) asked_at_ = with_.now;
  auto answer = problem(why.status, why.code, why.detail, request_.path);
  if (why.status == 503) answer.headers.set("Retry-After", "1");
  respond(std::move(answer), true);
}

void session::respond(response answer, bool close) {
  if (const auto fault = fault_of(answer); !fault.empty()) {
    with_.options.env.log->write(log_level::error, "http_answer_invalid",
                                 {{"path", request_.path}, {"why", std::string(fault)}});
    answer = problem(500, "internal_error", "the service failed; its log says why");
  }
  const auto said = answer.headers.find("Connection");
  close = close || with_.draining || (said && same_name(*said, "close"));
  if_possible([&] { note(answer); });
  append_answer(std::move(answer), close);
  next_request();
  if (close) stage_ = stage::finishing;
}

// As a whole or not at all: half an answer would be another one.
void session::append_answer(response answer, bool close) {
  const auto before = out_.size();
  try {
    const bool is_old = parser_.is_begun() && parser_.version() == 10;
    append_head(out_, answer, {close, is_old && !close, with_.date, &with_.options.answer_headers});
    if (!may_have_body(answer.status) || request_.method == "HEAD") return;
    if (answer.body.size() <= small_body_bytes_max)
      out_.append(answer.body);
    else
      large_body_ = std::move(answer.body);
  } catch (...) {
    out_.resize(before);
    throw;
  }
}

void session::note(const response& answer) {
  const auto took = std::chrono::duration_cast<duration>(steady::now() - asked_at_);
  const auto pattern = to_.path == nullptr ? std::string_view("other") : std::string_view(to_.path->pattern);
  with_.counts.request(to_.path == nullptr ? 0 : to_.path->number, pattern, request_.method, answer.status,
                       took);
  auto& log = *with_.options.env.log;
  if (!log.enabled(log_level::debug)) return;
  log.write(log_level::debug, "http_request",
            {{"route", std::string(pattern)},
             {"method", request_.method},
             {"status", std::to_string(answer.status)},
             {"microseconds", std::to_string(took.count())},
             {"bytes", std::to_string(answer.body.size())},
             {"remote", remote_},
             {"traceparent", request_.trace.traceparent}});
}

// The buffers are kept from one request to the next, unless they have grown.
void session::next_request() {
  with_.bodies_bytes -= counted_bytes_;
  counted_bytes_ = 0;
  to_ = {};
  request_.method.clear();
  request_.path.clear();
  request_.headers.clear();
  request_.body.clear();
  request_.path_parameters.clear();
  request_.trace = {};
  request_.cancelled = {};
  release_if_large(request_.body);
  parser_.begin(request_);
  stage_ = stage::head;
  since_ = with_.now;
  served_ = true;
}

void session::flush() {
  while (!is_closed() && sent_ < out_.size() + large_body_.size()) {
    std::array<iovec, 2> pieces;
    const auto of_out = std::min(sent_, out_.size());
    const auto of_body = sent_ - of_out;
    pieces[0] = {out_.data() + of_out, out_.size() - of_out};
    pieces[1] = {large_body_.data() + of_body, large_body_.size() - of_body};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = large_body_.empty() ? 1 : 2;
    const auto sent = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      if (!std::exchange(blocked_, true)) since_ = with_.now, sent_blocked_ = 0;
      return;
    }
    if (sent < 0) return close();
    sent_ += static_cast<std::size_t>(sent);
    sent_blocked_ += static_cast<std::size_t>(sent);
  }
  if (is_closed()) return;
  if (std::exchange(blocked_, false)) since_ = with_.now;
  sent_ = 0;
  out_.clear();
  release_if_large(out_);
  large_body_ = {};
  if (stage_ == stage::finishing) linger();
}

// Closing while bytes of the client are on their way makes its system throw our answer away. So we only stop
// talking, and wait a little for it to stop as well.
void session::linger() {
  ::shutdown(descriptor_, SHUT_WR);
  stage_ = stage::lingering;
  reads_paused_ = false;
  since_ = with_.now;
}

void session::close() {
  if (is_closed()) return;
  ::close(std::exchange(descriptor_, -1));
  if (job_) std::exchange(job_, nullptr)->leave();
  with_.bodies_bytes -= std::exchange(counted_bytes_, 0);
  with_.counts.closed();
}

void session::on_failure() noexcept {
  const bool owes_answer =
      !is_closed() && stage_ != stage::finishing && stage_ != stage::lingering && !is_idle();
  if (owes_answer && !blocked_) flush();
  if (owes_answer && !is_closed() && !blocked_) say_unavailable(descriptor_);
  close();
}

void session::drain() {
  if (is_idle()) on_readable();
  if (!is_closed() && is_idle() && !blocked_) close();
}

void session::cancel() {
  if (job_) job_->give_up();
  close();
}

std::optional<session::standing> session::dispensable() const {
  using enum standing::rank;
  if (stage_ == stage::lingering) return standing{answered, since_};
  if (stage_ != stage::head || blocked_) return std::nullopt;
  if (!served_ || !is_idle()) return standing{asks_nothing_yet, since_};
  if (with_.now - since_ < idle_time_min) return std::nullopt;
  return standing{between_requests, since_};
}

void session::give_way() {
  if (stage_ == stage::head) on_readable();  // what has come meanwhile counts
  if (is_closed() || !dispensable()) return;
  with_.counts.refused_connection();
  if (stage_ == stage::head && !is_idle()) say_unavailable(descriptor_);
  close();
}

void session::on_deadline() {
  if (blocked_) {
    with_.counts.refused_request("answer_slow");
    return close();
  }
  switch (stage_) {
    case stage::head:
      if (is_idle()) return close();
      refuse({408, "request_slow", "the headers took too long"});
      break;
    case stage::body:
      refuse({408, "request_slow", "the body took too long"});
      break;
    case stage::handling: {
      request_.path = job_->asked.path;  // the handler that has the request only reads it
      const bool never_begun = job_->give_up();
      job_.reset();
      refuse({503, "handler_timeout",
              never_begun ? "no worker was free in time; nothing was done"
                          : "the answer took too long; whether the work was done is not known"});
      break;
    }
    case stage::finishing:
    case stage::lingering:
      return close();
  }
  flush();
}

std::uint32_t session::interest() const {
  return (reads_paused_ ? 0U : static_cast<std::uint32_t>(EPOLLIN)) |
         (blocked_ ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
}

std::chrono::microseconds session::transfer_time(std::size_t bytes) const {
  const auto pace = with_.options.transfer_bytes_per_second_min;
  return with_.options.transfer_grace + std::chrono::microseconds(bytes * 1'000'000 / pace);
}

steady::time_point session::deadline() const {
  const auto& limits = with_.options;
  if (blocked_) return since_ + transfer_time(sent_blocked_);
  switch (stage_) {
    case stage::head:
      if (!is_idle()) return since_ + limits.header_time_max;
      return since_ + (served_ ? limits.idle_time_max : limits.first_byte_time_max);
    case stage::body:
      return since_ + transfer_time(request_.body.size());
    case stage::handling:
      return since_ + limits.handler_time_max;
    case stage::finishing:
    case stage::lingering:
      break;
  }
  return since_ + linger_time;
}

}  // namespace settle::inline v0::http
