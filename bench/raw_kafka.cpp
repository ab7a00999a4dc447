#include "raw_kafka.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "workload.hpp"

namespace bench {
namespace {

constexpr const char* group_name = "warehouse";
using settings = std::vector<std::pair<const char*, std::string>>;

rd_kafka_t* open_client(rd_kafka_type_t type, const raw_topic& of, const settings& with, void* self = nullptr,
                        void (*reported)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr) {
  auto* conf = rd_kafka_conf_new();
  char said[256] = "";
  const auto set = [&](const char* name, const std::string& value) {
    if (rd_kafka_conf_set(conf, name, value.c_str(), said, sizeof said) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(said);
  };
  set("bootstrap.servers", of.servers());
  set("socket.nagle.disable", "true");
  for (const auto& [name, value] : with) set(name, value);
  rd_kafka_conf_set_opaque(conf, self);
  if (reported != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, reported);
  auto* made = rd_kafka_new(type, conf, said, sizeof said);
  if (made == nullptr) throw std::runtime_error(said);
  return made;
}

std::string header(const rd_kafka_message_t& of, const char* name) {
  rd_kafka_headers_t* all = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(&of, &all) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(all, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return {};
  return {static_cast<const char*>(value), size};
}

}  // namespace

raw_topic::raw_topic(std::string url, const std::string& prefix)
    : url_(std::move(url)),
      prefix_(prefix + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ".") {
  open()->create_group(group_name, {topic});
}

raw_topic::~raw_topic() {
  auto* by = open_client(RD_KAFKA_PRODUCER, *this, {});
  auto* gone = rd_kafka_DeleteTopic_new(name().c_str());
  auto* answers = rd_kafka_queue_new(by);
  rd_kafka_DeleteTopics(by, &gone, 1, nullptr, answers);
  constexpr int patience_ms = 10'000;
  rd_kafka_event_destroy(rd_kafka_queue_poll(answers, patience_ms));
  rd_kafka_DeleteTopic_destroy(gone);
  rd_kafka_queue_destroy(answers);
  rd_kafka_destroy(by);
}

std::unique_ptr<settle::broker> raw_topic::open() const {
  return settle::kafka::open(url_, {.prefix = prefix_});
}
std::string raw_topic::servers() const { return url_.substr(url_.find("://") + 3); }
std::string raw_topic::name() const { return prefix_ + topic; }
std::string raw_topic::group() const { return prefix_ + group_name; }

raw_producer::raw_producer(const raw_topic& to)
    : topic_(to.name()),
      handle_(open_client(RD_KAFKA_PRODUCER, to,
                          {{"acks", "all"},
                           {"enable.idempotence", "true"},
                           {"enable.gapless.guarantee", "true"},
                           {"message.timeout.ms", "0"},
                           {"linger.ms", "0.2"},
                           {"partitioner", "murmur2_random"}},
                          this, &raw_producer::reported)) {}

raw_producer::~raw_producer() { rd_kafka_destroy(handle_); }

void raw_producer::reported(rd_kafka_t*, const rd_kafka_message_t* sent, void* self) {
  auto& of = *static_cast<raw_producer*>(self);
  --of.open_;
  if (sent->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++of.failed_;
}

void raw_producer::publish(std::span<const settle::message> messages, std::size_t at_once) {
  for (std::size_t n = 0; n < messages.size(); ++n) {
    publish_one(messages[n]);
    if ((n + 1) % at_once == 0 || n + 1 == messages.size()) await_reports();
  }
}

void raw_producer::publish_one(const settle::message& m) {
  auto* headers = rd_kafka_headers_new(8);
  const auto add = [&](const char* name, std::string_view text) {
    rd_kafka_header_add(headers, name, -1, text.data(), static_cast<ssize_t>(text.size()));
  };
  add("ce_specversion", "1.0");
  add("ce_id", m.id);
  add("ce_source", m.source);
  add("ce_type", m.type);
  add("ce_subject", m.subject);
  add("ce_time", "2026-01-01T00:00:00.000000Z");
  add("ce_partitionkey", m.key);
  add("content-type", m.content_type);
  for (const auto& one : m.extensions) add("ce_sequence", one.second);
  const auto failed =
      rd_kafka_producev(handle_, RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                        RD_KAFKA_V_KEY(m.key.data(), m.key.size()),
                        RD_KAFKA_V_VALUE(const_cast<char*>(m.payload.data()), m.payload.size()),
                        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  if (failed != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(failed));
  ++open_;
}

void raw_producer::await_reports() {
  while (open_ > 0) rd_kafka_poll(handle_, 1000);
  if (failed_ > 0) throw std::runtime_error("Kafka has not confirmed everything");
}

raw_consumer::raw_consumer(const raw_topic& from)
    : handle_(open_client(RD_KAFKA_CONSUMER, from,
                          {{"group.id", from.group()},
                           {"enable.auto.commit", "false"},
                           {"auto.offset.reset", "earliest"},
                           {"isolation.level", "read_committed"},
                           {"partition.assignment.strategy", "cooperative-sticky"}})) {
  rd_kafka_poll_set_consumer(handle_);
  queue_ = rd_kafka_queue_get_consumer(handle_);
  auto* list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, from.name().c_str(), RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(handle_, list);
  rd_kafka_topic_partition_list_destroy(list);
}

raw_consumer::~raw_consumer() {
  rd_kafka_queue_destroy(queue_);
  rd_kafka_consumer_close(handle_);
  rd_kafka_destroy(handle_);
}

raw_consumer::delivered raw_consumer::next() {
  while (true) {
    auto* one = rd_kafka_consumer_poll(handle_, 1000);
    if (one == nullptr) continue;
    if (one->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_message_destroy(one);
      continue;
    }
    delivered taken{header(*one, "ce_id"), std::string(static_cast<const char*>(one->key), one->key_len),
                    std::string(static_cast<const char*>(one->payload), one->len)};
    rd_kafka_message_destroy(one);
    return taken;
  }
}

void raw_consumer::commit() {
  const auto failed = rd_kafka_commit(handle_, nullptr, 0);
  if (failed != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(failed));
}

int run_on_kafka(
    int argc, char** argv,
    const std::function<std::vector<report>(const options&, const std::string&, const std::string&)>& body) {
  return run_program(argc, argv, [&](const options& opts) {
    const char* kafka = std::getenv("SETTLE_TEST_KAFKA");
    const char* postgres = std::getenv("SETTLE_TEST_POSTGRES");
    const bool there = kafka != nullptr && postgres != nullptr;
    write(opts, there ? body(opts, kafka, postgres) : std::vector<report>{});
  });
}

}  // namespace bench
