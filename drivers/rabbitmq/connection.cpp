#include "rabbitmq/connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>

#include "base/if_possible.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr std::size_t read_bytes = 65536;
constexpr int reads_per_turn = 16;  // then others may have the lock
constexpr std::uint16_t code_success = 200;

}  // namespace

connection::connection(const address& to, const options& with, const std::string& purpose,
                       const limit& within)
    : name_(to.name()), line_(to, with, within.at_most(with.connect_timeout)) {
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) throw error(errc::destination_unavailable, "no file descriptor left for " + name_);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  try {
    shake_hands(to, with, purpose, within.at_most(with.connect_timeout));
  } catch (...) {
    end();
    throw;
  }
}

connection::~connection() { end(); }

void connection::end() {
  thread_.request_stop();
  wake();
  thread_ = {};
  ::close(wake_);
}

void connection::shake_hands(const address& to, const options& with, const std::string& purpose,
                             const limit& within) {
  lock held(mutex_);
  out_.append(std::string_view("AMQP\0\0\x09\x01", 8));
  flush();
  const auto expect = [&](amqp_method_number_t which) {
    if (await_answer(held, 0, within).method != which)
      throw error(errc::destination_unavailable, name_ + " answers out of turn");
  };
  expect(AMQP_CONNECTION_START_METHOD);
  if (const auto lack = lack_of(server_); !lack.empty())
    throw error(errc::destination_unavailable, fmt::format("{} will not do: {}", name_, lack));
  table can;
  can.add("publisher_confirms", true)
      .add("basic.nack", true)
      .add("consumer_cancel_notify", true)
      .add("connection.blocked", true)
      .add("authentication_failure_close", true);
  table about;
  about.add("product", std::string_view("Settle"))
      .add("version", std::string_view(SETTLE_VERSION))
      .add("connection_name", std::string_view(purpose))
      .add("capabilities", can.get());
  std::string who("\0", 1);
  who.append(to.user).append("\0", 1).append(to.password);
  amqp_connection_start_ok_t start{about.get(), as_bytes("PLAIN"), as_bytes(who), as_bytes("en_US")};
  send(0, AMQP_CONNECTION_START_OK_METHOD, &start);
  flush();
  expect(AMQP_CONNECTION_TUNE_METHOD);  // what it says is taken where it is read
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(with.heartbeat).count();
  amqp_connection_tune_ok_t tune{channel_max_, static_cast<std::uint32_t>(writer_.frame_max()),
                                 static_cast<std::uint16_t>(seconds)};
  send(0, AMQP_CONNECTION_TUNE_OK_METHOD, &tune);
  heartbeat_ = with.heartbeat;
  amqp_connection_open_t open{as_bytes(to.vhost), {}, 0};
  send(0, AMQP_CONNECTION_OPEN_METHOD, &open);
  flush();
  expect(AMQP_CONNECTION_OPEN_OK_METHOD);
}

std::optional<std::string> connection::broken() const {
  const lock held(mutex_);
  return broken_;
}

std::optional<std::string> connection::blocked() const {
  const lock held(mutex_);
  return blocked_;
}

void connection::close(const limit& within) noexcept {
  try {
    lock held(mutex_);
    if (broken_) return;
    amqp_connection_close_t farewell{code_success, as_bytes("done"), 0, 0};
    send(0, AMQP_CONNECTION_CLOSE_METHOD, &farewell);
    flush();
    await_answer(held, 0, within);
  } catch (const std::exception&) {  // then it ends without the answer
  }
}

std::uint64_t connection::await_arrivals(std::uint64_t seen, const limit& within) {
  lock held(mutex_);
  changed_.wait_until(held, within.stop, within.until, [&] { return broken_ || arrivals_ != seen; });
  return arrivals_;
}

amqp_channel_t connection::open_number() {
  for (amqp_channel_t number = 1; number < (channel_max_ == 0 ? 65535 : channel_max_); ++number)
    if (inboxes_.try_emplace(number).second) return number;
  throw error(errc::destination_unavailable, name_ + " allows no more channels on one connection");
}

void connection::run(const std::stop_token& stop) noexcept {
  try {
    while (!stop.stop_requested()) turn(stop);
  } catch (const std::exception& e) {
    if_possible([&] {
      const lock held(mutex_);
      break_off(e.what());
    });
  }
}

// One wait, and what is to be done after it.
void connection::turn(const std::stop_token& stop) {
  constexpr int longest_ms = 1000;
  std::array<pollfd, 2> ready{pollfd{line_.socket(), POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
  int wait_ms = longest_ms;
  {
    const lock held(mutex_);
    if (!out_.empty()) ready[0].events |= POLLOUT;
    if (heartbeat_ > duration::zero())
      wait_ms = std::min<int>(wait_ms, static_cast<int>(heartbeat_ / std::chrono::milliseconds(4)));
  }
  ::poll(ready.data(), ready.size(), wait_ms);
  if (stop.stop_requested()) return;
  if (ready[1].revents != 0) {
    std::uint64_t count;
    [[maybe_unused]] const auto unused = ::read(wake_, &count, sizeof count);
  }
  const lock held(mutex_);
  if (ready[0].revents != 0) {
    std::array<char, read_bytes> bytes;
    for (int i = 0; i < reads_per_turn; ++i) {
      const auto got = line_.read(bytes.data(), bytes.size());
      if (got == 0) break;
      last_read_ = steady::now();
      reader_.add({bytes.data(), got});
      while (const auto one = reader_.next()) take(*one);
    }
  }
  keep_alive();
  write_out();
  changed_.notify_all();
}

void connection::keep_alive() {
  if (heartbeat_ == duration::zero()) return;
  const auto now = steady::now();
  if (now - last_read_ > 2 * heartbeat_)
    throw error(errc::destination_unavailable, name_ + " has been silent for two heartbeats");
  if (now - last_write_ > heartbeat_ / 2 && out_.empty()) frame_writer::heartbeat(out_);
}

void connection::flush() try {
  write_out();
  if (!out_.empty()) wake();  // the thread waits until there is room
} catch (const error& e) {
  break_off(e.what());
  throw;
}

void connection::write_out() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const auto now = line_.write(std::string_view(out_).substr(sent));
    if (now == 0) break;
    sent += now;
    last_write_ = steady::now();
  }
  out_.erase(0, sent);
}

void connection::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto unused = ::write(wake_, &one, sizeof one);
}

void connection::break_off(const std::string& why) {
  if (!broken_) broken_ = why;
  ++arrivals_;
  changed_.notify_all();
}

void connection::send(amqp_channel_t channel, amqp_method_number_t which, void* what) {
  if (broken_) throw error(errc::destination_unavailable, *broken_);
  if (!writer_.method(out_, channel, which, what))
    throw error(errc::invalid_argument, name_ + ": a name is too long for the protocol");
}

answer connection::await_answer(lock& held, amqp_channel_t channel, const limit& within) {
  auto& at = inboxes_.at(channel);
  await(held, within, [&] { return !at.answers.empty() || at.closed; });
  if (at.answers.empty()) throw refused(name_, *at.closed);
  const auto said = at.answers.front();
  at.answers.pop_front();
  return said;
}

void connection::take(const frame& one) {
  if (one.type == AMQP_FRAME_HEARTBEAT) return;
  if (one.type == AMQP_FRAME_METHOD) return take_method(one);
  const auto found = inboxes_.find(one.channel);
  if (found == inboxes_.end()) return;  // of a channel that was given up
  auto& at = found->second;
  if (!at.coming) return;
  if (one.type == AMQP_FRAME_HEADER) return take_header(at, one);
  at.coming->message.content.body.append(one.body);
  at.coming->missing -= std::min<std::uint64_t>(one.body.size(), at.coming->missing);
  if (at.coming->missing == 0) finish_message(at);
}

void connection::take_header(channel_inbox& at, const frame& one) {
  at.coming->message.content = read_properties(*static_cast<const amqp_basic_properties_t*>(one.decoded));
  at.coming->missing = one.body_size;
  if (one.body_size == 0) finish_message(at);
}

void connection::finish_message(channel_inbox& at) {
  auto done = std::move(*at.coming);
  at.coming.reset();
  const auto& content = done.message.content;
  if (done.is_return) {
    if (const auto* number = content.header(number_header)) at.returned.push_back(std::stoull(*number));
  } else if (content.header(probe_header) != nullptr) {
    at.probes.push_back(done.message.tag);
  } else if (const auto* text = content.header(milestone_header); text != nullptr) {
    at.milestones.push_back({done.message.tag, *text});
  } else {
    at.arrived.push_back(std::move(done.message));
  }
  ++arrivals_;
}

void connection::take_method(const frame& one) {
  if (one.channel == 0) {
    switch (one.method) {
      case AMQP_CONNECTION_START_METHOD:
        server_ = read_facts(static_cast<const amqp_connection_start_t*>(one.decoded)->server_properties);
        break;
      case AMQP_CONNECTION_TUNE_METHOD: {
        const auto& offered = *static_cast<const amqp_connection_tune_t*>(one.decoded);
        channel_max_ = offered.channel_max;
        if (offered.frame_max != 0 && offered.frame_max < writer_.frame_max())
          writer_.frame_max(offered.frame_max);
        break;
      }
      case AMQP_CONNECTION_BLOCKED_METHOD:
        blocked_ = as_view(static_cast<const amqp_connection_blocked_t*>(one.decoded)->reason);
        return;
      case AMQP_CONNECTION_UNBLOCKED_METHOD:
        blocked_.reset();
        return;
      case AMQP_CONNECTION_CLOSE_METHOD: {
        const std::string text(as_view(static_cast<const amqp_connection_close_t*>(one.decoded)->reply_text));
        amqp_connection_close_ok_t yes{};
        send(0, AMQP_CONNECTION_CLOSE_OK_METHOD, &yes);
        flush();
        throw error(errc::destination_unavailable,
                    fmt::format("{} has ended the connection: {}", name_, text));
      }
      default:
        break;
    }
    inboxes_.at(0).answers.push_back({one.method});
    return;
  }
  if (const auto found = inboxes_.find(one.channel); found != inboxes_.end())
    take_channel_method(found->second, one);
}

void connection::take_channel_method(channel_inbox& at, const frame& one) {
  switch (one.method) {
    case AMQP_BASIC_DELIVER_METHOD: {
      const auto& said = *static_cast<const amqp_basic_deliver_t*>(one.decoded);
      at.coming.emplace();
      at.coming->message.tag = said.delivery_tag;
      at.coming->message.exchange = as_view(said.exchange);
      at.coming->message.routing_key = as_view(said.routing_key);
      return;
    }
    case AMQP_BASIC_GET_OK_METHOD:
      at.coming.emplace();
      at.coming->message.tag = static_cast<const amqp_basic_get_ok_t*>(one.decoded)->delivery_tag;
      break;
    case AMQP_BASIC_RETURN_METHOD:
      at.coming.emplace();
      at.coming->is_return = true;
      return;
    case AMQP_BASIC_ACK_METHOD: {
      const auto& said = *static_cast<const amqp_basic_ack_t*>(one.decoded);
      at.confirmations.push_back({said.delivery_tag, said.multiple != 0, true});
      return;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto& said = *static_cast<const amqp_basic_nack_t*>(one.decoded);
      at.confirmations.push_back({said.delivery_tag, said.multiple != 0, false});
      return;
    }
    case AMQP_BASIC_CANCEL_METHOD:
      at.cancelled = true;
      ++arrivals_;
      return;
    case AMQP_CHANNEL_CLOSE_METHOD: {
      const auto& said = *static_cast<const amqp_channel_close_t*>(one.decoded);
      at.closed = refusal{said.reply_code, std::string(as_view(said.reply_text))};
      at.coming.reset();
      amqp_channel_close_ok_t yes{};
      send(one.channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &yes);
      ++arrivals_;
      return;
    }
    default:
      break;
  }
  answer said{one.method};
  if (one.method == AMQP_QUEUE_DECLARE_OK_METHOD) {
    const auto& queue = *static_cast<const amqp_queue_declare_ok_t*>(one.decoded);
    said.messages = queue.message_count;
    said.consumers = queue.consumer_count;
  }
  at.answers.push_back(said);
}

}  // namespace settle::inline v0::rabbitmq
