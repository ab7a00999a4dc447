#include "rabbitmq/frames.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"

namespace settle::rabbitmq {
namespace {

std::string some_frames() {
  std::string line;
  frame_writer writer;
  amqp_queue_declare_ok_t declared{as_bytes("orders"), 3, 2};
  EXPECT_TRUE(writer.method(line, 7, AMQP_QUEUE_DECLARE_OK_METHOD, &declared));
  frame_writer::heartbeat(line);
  table headers;
  headers.add("text", std::string_view("Zürich")).add("number", std::int64_t{-5}).add("yes", true);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = headers.get();
  EXPECT_TRUE(writer.header(line, 7, 5, properties));
  writer.body(line, 7, "hello");
  return line;
}

// What each frame says, as words.
std::string told(const frame& one) {
  if (one.type == AMQP_FRAME_HEARTBEAT) return "heartbeat;";
  if (one.type == AMQP_FRAME_BODY) return "body " + std::string(one.body) + ";";
  if (one.type == AMQP_FRAME_HEADER) {
    const auto& of = *static_cast<const amqp_basic_properties_t*>(one.decoded);
    return "header of " + std::to_string(one.body_size) + " with " +
           std::string(as_view(of.headers.entries[0].value.value.bytes)) + ";";
  }
  const auto& queue = *static_cast<const amqp_queue_declare_ok_t*>(one.decoded);
  return "queue " + std::string(as_view(queue.queue)) + " " + std::to_string(queue.message_count) + " on " +
         std::to_string(one.channel) + ";";
}

TEST(rabbitmq_frames, are_read_as_they_were_written_however_they_arrive) {
  const auto line = some_frames();
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{11}, line.size()}) {
    frame_reader reader;
    std::string all;
    for (std::size_t at = 0; at < line.size(); at += piece) {
      reader.add(std::string_view(line).substr(at, piece));
      while (const auto one = reader.next()) all += told(*one);
    }
    EXPECT_EQ(all, "queue orders 3 on 7;heartbeat;header of 5 with Zürich;body hello;") << piece;
  }
}

TEST(rabbitmq_frames, a_body_that_is_larger_than_a_frame_is_sent_in_parts) {
  frame_writer writer;
  writer.frame_max(4096);
  std::string line;
  const std::string body(10000, 'x');
  writer.body(line, 1, body);
  frame_reader reader;
  reader.frame_max(4096);
  reader.add(line);
  std::string read;
  int parts = 0;
  for (; const auto one = reader.next(); ++parts) read += one->body;
  EXPECT_EQ(read, body);
  EXPECT_EQ(parts, 3);
}

TEST(rabbitmq_frames, what_does_not_fit_leaves_nothing_behind) {
  frame_writer writer;
  writer.frame_max(4096);
  const std::string large(5000, 'x');
  table headers;
  headers.add("large", std::string_view(large));
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = headers.get();
  std::string line;
  EXPECT_FALSE(writer.header(line, 1, 0, properties));
  EXPECT_TRUE(line.empty());
}

TEST(rabbitmq_frames, what_is_no_amqp_is_refused) {
  using namespace std::string_literals;
  auto no_end = some_frames();
  no_end[no_end.find('\xce')] = 'x';
  for (const auto& line :
       {"AMQP\0\1\0\0"s, "HTTP/1.1 400 Bad Request\r\n"s, no_end, "\1\0\1\0\0\0\4\xff\xff\xff\xff\xce"s,
        "\1\0\1\0\0\0\1x\xce"s, "\2\0\1\0\0\0\1x\xce"s}) {
    frame_reader reader;
    reader.add(line);
    EXPECT_THROW(while (reader.next()){}, error) << line;
  }
}

}  // namespace
}  // namespace settle::rabbitmq
