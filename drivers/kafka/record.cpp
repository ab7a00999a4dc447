#include "kafka/record.hpp"

#include "kafka/wire_message.hpp"

namespace settle::inline v0::kafka {

message content_of(const rd_kafka_message_t& from, const std::string& topic) {
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
  return read_message(std::move(read), topic);
}

}  // namespace settle::inline v0::kafka
