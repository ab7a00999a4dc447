#include "raw_rabbitmq.hpp"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "workload.hpp"

namespace bench {
namespace {

constexpr amqp_channel_t channel = 1;

amqp_bytes_t bytes(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string_view view(const amqp_bytes_t& of) { return {static_cast<const char*>(of.bytes), of.len}; }

// What a careful programmer would write once: any spread will do, as long as a key keeps its lane.
std::string lane_of(const std::string& key) {
  return std::to_string(std::hash<std::string_view>()(key) % 256);
}

std::string header(const amqp_basic_properties_t& of, std::string_view name) {
  for (int i = 0; i < of.headers.num_entries; ++i)
    if (view(of.headers.entries[i].key) == name)
      return std::string(view(of.headers.entries[i].value.value.bytes));
  return {};
}

}  // namespace

raw_group::raw_group(std::string url, std::string prefix) : url_(std::move(url)), prefix_(std::move(prefix)) {
  open()->subscribe({group, {topic}})->leave();
}

raw_group::~raw_group() {
  raw_rabbitmq line(url_);
  for (int i = 0; i < queues; ++i) line.delete_queue(queue(i));
  for (const char* one : {"", "/members"}) line.delete_queue(prefix_ + group + "/" + topic + one);
  line.delete_queue(prefix_ + "settle.registry");
  line.delete_exchange(exchange());
}

settle::rabbitmq::options raw_group::options() const {
  settle::rabbitmq::options made;
  made.queues = queues;
  made.prefix = prefix_;
  return made;
}

std::string raw_group::exchange() const { return prefix_ + topic; }

std::string raw_group::queue(int number) const {
  return prefix_ + group + "/" + topic + "/" + std::to_string(number);
}

void raw_group::purge() const {
  raw_rabbitmq line(url_);
  for (int i = 0; i < queues; ++i) line.purge(queue(i));
}

raw_rabbitmq::raw_rabbitmq(const std::string& url) : conn_(amqp_new_connection()) {
  auto text = url;
  amqp_connection_info to{};
  if (amqp_parse_url(text.data(), &to) != AMQP_STATUS_OK)
    throw std::runtime_error("no URL of RabbitMQ that librabbitmq reads");
  auto* socket = amqp_tcp_socket_new(conn_);
  if (amqp_socket_open(socket, to.host, to.port) != AMQP_STATUS_OK)
    throw std::runtime_error("RabbitMQ does not answer");
  const std::string vhost = to.vhost == nullptr || *to.vhost == '\0' ? "/" : to.vhost;
  constexpr int frame_max = 131072, heartbeat_s = 0;
  const auto login = amqp_login(conn_, vhost.c_str(), 0, frame_max, heartbeat_s, AMQP_SASL_METHOD_PLAIN,
                                to.user, to.password);
  if (login.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error("RabbitMQ does not let us in");
  amqp_channel_open(conn_, channel);
  check("channel");
}

raw_rabbitmq::~raw_rabbitmq() {
  amqp_connection_close(conn_, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(conn_);
}

void raw_rabbitmq::check(const char* what) const {
  if (amqp_get_rpc_reply(conn_).reply_type != AMQP_RESPONSE_NORMAL)
    throw std::runtime_error(std::string("RabbitMQ has refused: ") + what);
}

void raw_rabbitmq::publish(const std::string& exchange, std::span<const settle::message> messages,
                           std::size_t at_once) {
  if (sent_ == 0) {
    amqp_confirm_select(conn_, channel);
    check("confirms");
  }
  for (std::size_t n = 0; n < messages.size(); ++n) {
    publish_one(exchange, messages[n]);
    if ((n + 1) % at_once == 0 || n + 1 == messages.size()) await_confirms();
  }
}

void raw_rabbitmq::publish_one(const std::string& exchange, const settle::message& m) {
  std::vector<amqp_table_entry_t> headers;
  const auto add = [&](std::string_view name, std::string_view text) {
    amqp_table_entry_t one{};
    one.key = bytes(name);
    one.value.kind = AMQP_FIELD_KIND_UTF8;
    one.value.value.bytes = bytes(text);
    headers.push_back(one);
  };
  add("cloudEvents_specversion", "1.0");
  add("cloudEvents_id", m.id);
  add("cloudEvents_source", m.source);
  add("cloudEvents_type", m.type);
  add("cloudEvents_subject", m.subject);
  add("cloudEvents_time", "2026-01-01T00:00:00.000000Z");
  add("cloudEvents_partitionkey", m.key);
  for (const auto& one : m.extensions) add("cloudEvents_sequence", one.second);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG |
                      AMQP_BASIC_MESSAGE_ID_FLAG;
  properties.headers = {static_cast<int>(headers.size()), headers.data()};
  properties.delivery_mode = 2;
  properties.content_type = bytes(m.content_type);
  properties.message_id = bytes(m.id);
  const auto lane = lane_of(m.key);
  if (amqp_basic_publish(conn_, channel, bytes(exchange), bytes(lane), 1, 0, &properties, bytes(m.payload)) !=
      AMQP_STATUS_OK)
    throw std::runtime_error("RabbitMQ takes no message");
  open_.insert(++sent_);
}

void raw_rabbitmq::await_confirms() {
  while (!open_.empty()) {
    amqp_frame_t frame;
    amqp_maybe_release_buffers(conn_);
    if (amqp_simple_wait_frame(conn_, &frame) != AMQP_STATUS_OK) throw std::runtime_error("no confirmation");
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
      throw std::runtime_error("RabbitMQ has not confirmed");
    const auto& said = *static_cast<amqp_basic_ack_t*>(frame.payload.method.decoded);
    if (said.multiple != 0)
      open_.erase(open_.begin(), open_.upper_bound(said.delivery_tag));
    else
      open_.erase(said.delivery_tag);
  }
}

void raw_rabbitmq::consume(const raw_group& from, int prefetch) {
  amqp_basic_qos(conn_, channel, 0, static_cast<std::uint16_t>(prefetch), 0);
  check("prefetch");
  for (int i = 0; i < queues; ++i) {
    const auto name = from.queue(i);
    amqp_basic_consume(conn_, channel, bytes(name), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    check("consume");
  }
}

raw_rabbitmq::delivered raw_rabbitmq::next() {
  amqp_envelope_t one;
  amqp_maybe_release_buffers(conn_);
  if (amqp_consume_message(conn_, &one, nullptr, 0).reply_type != AMQP_RESPONSE_NORMAL)
    throw std::runtime_error("nothing is delivered");
  delivered taken{one.delivery_tag, std::string(view(one.message.properties.message_id)),
                  header(one.message.properties, "cloudEvents_partitionkey"),
                  std::string(view(one.message.body))};
  amqp_destroy_envelope(&one);
  return taken;
}

void raw_rabbitmq::acknowledge_through(std::uint64_t tag) { amqp_basic_ack(conn_, channel, tag, 1); }

void raw_rabbitmq::purge(const std::string& queue) {
  amqp_queue_purge(conn_, channel, bytes(queue));
  check("purge");
}

void raw_rabbitmq::delete_queue(const std::string& queue) {
  amqp_queue_delete(conn_, channel, bytes(queue), 0, 0);
}

void raw_rabbitmq::delete_exchange(const std::string& exchange) {
  amqp_exchange_delete(conn_, channel, bytes(exchange), 0);
}

int run_on_rabbitmq(
    int argc, char** argv,
    const std::function<std::vector<report>(const options&, const std::string&, const std::string&)>& body) {
  return run_program(argc, argv, [&](const options& opts) {
    const char* rabbitmq = std::getenv("SETTLE_TEST_RABBITMQ");
    const char* postgres = std::getenv("SETTLE_TEST_POSTGRES");
    const bool there = rabbitmq != nullptr && postgres != nullptr;
    write(opts, there ? body(opts, rabbitmq, postgres) : std::vector<report>{});
  });
}

}  // namespace bench
