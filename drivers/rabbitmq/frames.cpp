#include "rabbitmq/frames.hpp"

#include <algorithm>

#include "settle/error.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr std::size_t head_bytes = 7;  // type, channel, size
constexpr char frame_end = '\xce';
constexpr std::size_t method_id_bytes = 4;
constexpr std::size_t content_head_bytes = 12;  // class, weight, size of the body

template <class Number>
void put(std::string& to, Number value) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
    to += static_cast<char>(value >> shift & 0xff);
}

template <class Number>
Number get(std::string_view from, std::size_t at) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<Number>(value << 8 | static_cast<unsigned char>(from[at + i]));
  return value;
}

void head(std::string& to, int type, amqp_channel_t channel, std::size_t size) {
  put(to, static_cast<std::uint8_t>(type));
  put(to, static_cast<std::uint16_t>(channel));
  put(to, static_cast<std::uint32_t>(size));
}

amqp_table_entry_t entry(std::string_view name, std::uint8_t kind) {
  amqp_table_entry_t made{};
  made.key = as_bytes(name);
  made.value.kind = kind;
  return made;
}

error broken(const char* why) {
  return {errc::destination_unavailable, std::string("this is no AMQP 0-9-1: ") + why};
}

}  // namespace

table& table::add(std::string_view name, std::string_view text) {
  entries_.push_back(entry(name, AMQP_FIELD_KIND_UTF8));
  entries_.back().value.value.bytes = as_bytes(text);
  return *this;
}

table& table::add(std::string_view name, bool value) {
  entries_.push_back(entry(name, AMQP_FIELD_KIND_BOOLEAN));
  entries_.back().value.value.boolean = value ? 1 : 0;
  return *this;
}

table& table::add(std::string_view name, std::int64_t value) {
  entries_.push_back(entry(name, AMQP_FIELD_KIND_I64));
  entries_.back().value.value.i64 = value;
  return *this;
}

table& table::add(std::string_view name, const amqp_table_t& inner) {
  entries_.push_back(entry(name, AMQP_FIELD_KIND_TABLE));
  entries_.back().value.value.table = inner;
  return *this;
}

bool frame_writer::method(std::string& to, amqp_channel_t channel, amqp_method_number_t which, void* what) {
  const auto room = scratch_.size() - head_bytes - 1 - method_id_bytes;
  const int size = amqp_encode_method(which, what, {room, scratch_.data()});
  if (size < 0) return false;
  head(to, AMQP_FRAME_METHOD, channel, method_id_bytes + static_cast<std::size_t>(size));
  put(to, static_cast<std::uint32_t>(which));
  to.append(scratch_.data(), static_cast<std::size_t>(size));
  to += frame_end;
  return true;
}

bool frame_writer::header(std::string& to, amqp_channel_t channel, std::uint64_t body_size,
                          amqp_basic_properties_t& of) {
  const auto room = scratch_.size() - head_bytes - 1 - content_head_bytes;
  const int size = amqp_encode_properties(AMQP_BASIC_CLASS, &of, {room, scratch_.data()});
  if (size < 0) return false;
  head(to, AMQP_FRAME_HEADER, channel, content_head_bytes + static_cast<std::size_t>(size));
  put(to, static_cast<std::uint16_t>(AMQP_BASIC_CLASS));
  put(to, std::uint16_t{0});
  put(to, body_size);
  to.append(scratch_.data(), static_cast<std::size_t>(size));
  to += frame_end;
  return true;
}

void frame_writer::body(std::string& to, amqp_channel_t channel, std::string_view bytes) {
  const auto part = scratch_.size() - head_bytes - 1;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size()))) {
    const auto now = bytes.substr(0, part);
    head(to, AMQP_FRAME_BODY, channel, now.size());
    to.append(now);
    to += frame_end;
  }
}

void frame_writer::heartbeat(std::string& to) {
  head(to, AMQP_FRAME_HEARTBEAT, 0, 0);
  to += frame_end;
}

std::optional<frame> frame_reader::next() {
  const auto bytes = std::string_view(buffer_).substr(read_);
  // A server that does not speak our version answers with the one that it does speak, and no frame.
  if (bytes.starts_with("AMQP")) throw broken("the server wants another version of the protocol");
  std::size_t size = 0;
  if (bytes.size() >= head_bytes) {
    size = get<std::uint32_t>(bytes, 3);
    if (size > frame_max_) throw broken("a frame is larger than agreed");
  }
  if (bytes.size() < head_bytes || bytes.size() < head_bytes + size + 1) {
    buffer_.erase(0, read_);
    read_ = 0;
    return std::nullopt;
  }
  if (bytes[head_bytes + size] != frame_end) throw broken("a frame without its end");
  read_ += head_bytes + size + 1;
  recycle_amqp_pool(&pool_);
  auto payload = bytes.substr(head_bytes, size);
  frame found{.type = static_cast<unsigned char>(bytes[0]), .channel = get<std::uint16_t>(bytes, 1)};
  if (found.type == AMQP_FRAME_METHOD) {
    if (size < method_id_bytes) throw broken("a method without its number");
    found.method = get<std::uint32_t>(payload, 0);
    if (amqp_decode_method(found.method, &pool_, as_bytes(payload.substr(method_id_bytes)), &found.decoded) <
        0)
      throw broken("a method that cannot be read");
  } else if (found.type == AMQP_FRAME_HEADER) {
    if (size < content_head_bytes) throw broken("a content header that is too short");
    found.body_size = get<std::uint64_t>(payload, 4);
    if (amqp_decode_properties(get<std::uint16_t>(payload, 0), &pool_,
                               as_bytes(payload.substr(content_head_bytes)), &found.decoded) < 0)
      throw broken("properties that cannot be read");
  } else if (found.type == AMQP_FRAME_BODY) {
    found.body = payload;
  }
  return found;
}

}  // namespace settle::inline v0::rabbitmq
