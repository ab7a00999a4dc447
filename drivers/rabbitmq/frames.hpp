// Frames of AMQP 0-9-1: written into a buffer and read from one, with the codec of librabbitmq. Its own
// connections are not used: their writes cannot be given a time limit.
#pragma once

#include <amqp.h>
#include <amqp_framing.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace settle::inline v0::rabbitmq {

// A view for the codec, which does not write to it.
inline amqp_bytes_t as_bytes(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // NOLINT: C interface without const
}
inline std::string_view as_view(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

// A table of names and values that live elsewhere.
class table {
 public:
  table& add(std::string_view name, std::string_view text);
  table& add(std::string_view name, bool value);
  table& add(std::string_view name, std::int64_t value);
  table& add(std::string_view name, const amqp_table_t& inner);
  amqp_table_t get() { return {static_cast<int>(entries_.size()), entries_.data()}; }

 private:
  std::vector<amqp_table_entry_t> entries_;
};

// Appends frames to a buffer.
class frame_writer {
 public:
  static constexpr std::size_t frame_bytes_max = 131072;  // until both sides have agreed on less

  void frame_max(std::size_t bytes) { scratch_.resize(bytes); }
  std::size_t frame_max() const { return scratch_.size(); }

  // False: it does not fit into a frame, and nothing was appended.
  bool method(std::string& to, amqp_channel_t channel, amqp_method_number_t which, void* what);
  bool header(std::string& to, amqp_channel_t channel, std::uint64_t body_size, amqp_basic_properties_t& of);
  void body(std::string& to, amqp_channel_t channel, std::string_view bytes);
  static void heartbeat(std::string& to);

 private:
  std::string scratch_ = std::string(frame_bytes_max, '\0');
};

// One frame as it came; what is decoded lives until the next one is read.
struct frame {
  int type = 0;
  amqp_channel_t channel = 0;
  amqp_method_number_t method = 0;  // of a method
  void* decoded = nullptr;          // a method's fields, or a header's properties
  std::uint64_t body_size = 0;      // of a header
  std::string_view body = {};       // of a body
};

// Takes bytes as they arrive and gives whole frames. Throws destination_unavailable for what is no AMQP: then
// the line is of no use any more.
class frame_reader {
 public:
  frame_reader() { init_amqp_pool(&pool_, pool_page_bytes); }
  ~frame_reader() { empty_amqp_pool(&pool_); }
  frame_reader(const frame_reader&) = delete;
  frame_reader& operator=(const frame_reader&) = delete;

  void frame_max(std::size_t bytes) { frame_max_ = bytes; }
  void add(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<frame> next();

 private:
  static constexpr std::size_t pool_page_bytes = 4096;

  std::string buffer_;
  std::size_t read_ = 0;  // so much of it has been given out
  std::size_t frame_max_ = frame_writer::frame_bytes_max;
  amqp_pool_t pool_{};
};

}  // namespace settle::inline v0::rabbitmq
