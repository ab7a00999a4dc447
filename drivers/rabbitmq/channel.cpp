#include <algorithm>

#include "rabbitmq/connection.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

// What may wait to be sent before whoever has more waits himself.
constexpr std::size_t unsent_bytes_max = std::size_t{1} << 20;
// Small messages are sent together.
constexpr std::size_t sent_at_once_bytes = std::size_t{1} << 16;
constexpr std::uint16_t code_success = 200;

}  // namespace

channel::channel(connection& on, const limit& within) : on_(on) {
  {
    const connection::lock held(on_.mutex_);
    number_ = on_.open_number();
  }
  call(AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{}, within);  // if it fails the number stays taken
}

channel::~channel() {
  const connection::lock held(on_.mutex_);
  if (closed_by_both_ || inbox().closed)
    on_.inboxes_.erase(number_);
  else
    inbox() = {};  // what still comes is for nobody
}

void channel::require_open() const {
  if (on_.broken_) throw error(errc::destination_unavailable, *on_.broken_);
  if (inbox().closed) throw refused(on_.name_, *inbox().closed);
}

answer channel::await_answer(const limit& within) {
  connection::lock held(on_.mutex_);
  return on_.await_answer(held, number_, within);
}

void channel::flush() {
  const connection::lock held(on_.mutex_);
  if (!on_.broken_) on_.flush();
}

std::optional<arrived_message> channel::get(const std::string& queue, const limit& within) {
  amqp_basic_get_t what{};
  what.queue = as_bytes(queue);
  if (call(AMQP_BASIC_GET_METHOD, what, within).method == AMQP_BASIC_GET_EMPTY_METHOD) return std::nullopt;
  connection::lock held(on_.mutex_);
  on_.await(held, within, [&] { return !inbox().arrived.empty() || inbox().closed; });
  require_open();
  auto found = std::move(inbox().arrived.front());
  inbox().arrived.pop_front();
  return found;
}

bool channel::publish(std::string_view exchange, std::string_view routing_key,
                      amqp_basic_properties_t& properties, std::string_view body, const limit& within) {
  connection::lock held(on_.mutex_);
  require_open();
  if (on_.out_.size() > unsent_bytes_max) {
    on_.flush();
    on_.await(held, within, [&] {
      return on_.out_.size() <= unsent_bytes_max || inbox().closed || on_.blocked_ ||
             !inbox().returned.empty();
    });
    require_open();
  }
  const auto before = on_.out_.size();
  amqp_basic_publish_t what{};
  what.exchange = as_bytes(exchange);
  what.routing_key = as_bytes(routing_key);
  what.mandatory = 1;
  on_.send(number_, AMQP_BASIC_PUBLISH_METHOD, &what);
  if (!on_.writer_.header(on_.out_, number_, body.size(), properties)) {
    on_.out_.resize(before);
    return false;
  }
  on_.writer_.body(on_.out_, number_, body);
  if (on_.out_.size() > sent_at_once_bytes) on_.flush();
  return true;
}

void channel::close(const limit& within) {
  connection::lock held(on_.mutex_);
  if (on_.broken_ || inbox().closed) return;
  amqp_channel_close_t farewell{code_success, as_bytes("done"), 0, 0};
  on_.send(number_, AMQP_CHANNEL_CLOSE_METHOD, &farewell);
  on_.flush();
  const auto is_done = [](const answer& one) { return one.method == AMQP_CHANNEL_CLOSE_OK_METHOD; };
  on_.await(held, within, [&] { return std::ranges::any_of(inbox().answers, is_done) || inbox().closed; });
  closed_by_both_ = true;
}

std::optional<std::string> channel::ended() const {
  const connection::lock held(on_.mutex_);
  if (on_.broken_) return on_.broken_;
  if (inbox().closed) return inbox().closed->text;
  if (inbox().cancelled) return "its queue has gone";
  return std::nullopt;
}

std::optional<refusal> channel::closed() const {
  const connection::lock held(on_.mutex_);
  return inbox().closed;
}

channel::news channel::take_news_now() {
  auto& from = inbox();
  news taken{{from.confirmations.begin(), from.confirmations.end()},
             std::move(from.returned),
             on_.blocked_,
             from.closed};
  from.confirmations.clear();
  from.returned.clear();
  return taken;
}

channel::news channel::take_news() {
  const connection::lock held(on_.mutex_);
  return take_news_now();
}

channel::news channel::await_news(const limit& within) {
  connection::lock held(on_.mutex_);
  on_.flush();
  on_.await(held, within, [&] {
    const auto& at = inbox();
    return !at.confirmations.empty() || !at.returned.empty() || at.closed || on_.blocked_;
  });
  return take_news_now();
}

std::vector<arrived_message> channel::take(std::size_t messages_max) {
  const connection::lock held(on_.mutex_);
  auto& from = inbox().arrived;
  const auto count = static_cast<std::ptrdiff_t>(std::min(messages_max, from.size()));
  std::vector<arrived_message> taken(std::move_iterator(from.begin()),
                                     std::move_iterator(from.begin() + count));
  from.erase(from.begin(), from.begin() + count);
  return taken;
}

bool channel::has_arrivals() const {
  const connection::lock held(on_.mutex_);
  return !inbox().arrived.empty();
}

std::vector<std::uint64_t> channel::take_probes() {
  const connection::lock held(on_.mutex_);
  return std::exchange(inbox().probes, {});
}

std::vector<milestone> channel::take_milestones() {
  const connection::lock held(on_.mutex_);
  return std::exchange(inbox().milestones, {});
}

std::optional<std::uint64_t> channel::first_arrived() const {
  const connection::lock held(on_.mutex_);
  const auto& from = inbox().arrived;
  return from.empty() ? std::nullopt : std::optional(from.front().tag);
}

}  // namespace settle::inline v0::rabbitmq
