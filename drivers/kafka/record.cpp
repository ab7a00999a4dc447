#include "kafka/record.hpp"

#include "kafka/wire_message.hpp"

namespace settle::inline v0::kafka {

namespace {

named_texts properties_of(const rd_kafka_message_t& from, std::string_view key) {
  named_texts all{{"topic", rd_kafka_topic_name(from.rkt)},
                  {"partition", std::to_string(from.partition)},
                  {"offset", std::to_string(from.offset)}};
  if (!key.empty()) all.emplace_back("key", key);
  rd_kafka_timestamp_type_t type{};
  if (const auto ms = rd_kafka_message_timestamp(&from, &type); ms >= 0)
    all.emplace_back("timestamp", std::to_string(ms));
  return all;
}

}  // namespace

message content_of(const rd_kafka_message_t& from, const std::string& topic, const mapper* by) {
  wire_message read;
  if (from.key != nullptr) read.key = {static_cast<const char*>(from.key), from.key_len};
  if (from.payload != nullptr) read.value = {static_cast<const char*>(from.payload), from.len};
  rd_kafka_headers_t* all = nullptr;
  if (rd_kafka_message_headers(&from, &all) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(all, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
      read.headers.emplace_back(name,
                                std::string(static_cast<const char*>(value), value == nullptr ? 0 : size));
  }
  if (by == nullptr) return read_message(std::move(read), topic);
  const auto properties = properties_of(from, read.key);
  return read_foreign_message(std::move(read), topic, properties, *by);
}

}  // namespace settle::inline v0::kafka
