// Bytes of a connection to one answer, for the client. Pure.
//
// Strict where two readers could differ: lines end with CR LF, headers are not folded, there is one length or
// none. A server that is lenient towards itself gets no second chance, because whoever stands between could
// have read it the other way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "settle/http.hpp"

namespace settle::inline v0::http {

struct answer_limits {
  std::size_t head_bytes_max;
  std::size_t header_count_max;
  std::size_t body_bytes_max;
};

class answer_parser {
 public:
  enum class step { more, done, malformed, too_large };

  // `without_body`: the answer of a HEAD, which has lengths and no body.
  answer_parser(const answer_limits& limits, bool without_body)
      : limits_(limits), without_body_(without_body) {}

  // Takes what belongs to the answer, and says how much that was.
  std::size_t feed(std::string_view bytes);
  // The connection has ended, properly. Done if the end is what this answer ends with.
  step end();

  step reached() const { return reached_; }
  std::string_view why() const { return why_; }  // if it is malformed or too large
  bool is_begun() const { return begun_; }
  // Whether another request may follow on the connection.
  bool keeps_connection() const { return keep_alive_; }
  response& answer() { return answer_; }

 private:
  enum class part { status, headers, body, body_to_the_end, chunk, chunk_body, chunk_end, trailer };

  std::size_t read_line(std::string_view bytes);
  std::size_t read_body(std::string_view bytes);
  void take_line(std::string_view line);
  void take_status(std::string_view line);
  void take_header(std::string_view line);
  void take_framing(std::string_view name, std::string_view value);
  void take_length(std::string_view value);
  void end_head();
  void take_chunk(std::string_view line);
  void expect_bytes(std::uint64_t count, part then);
  void refuse(step how, std::string_view why);

  const answer_limits limits_;
  const bool without_body_;
  response answer_;
  part part_ = part::status;
  step reached_ = step::more;
  std::string_view why_;
  std::string line_;  // as far as it has come
  std::size_t head_bytes_ = 0;
  std::size_t fields_ = 0;
  int version_ = 0;
  int lengths_ = 0;
  int encodings_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t bytes_left_ = 0;  // of the body, or of a chunk
  bool keep_alive_ = false;
  bool close_ = false, keep_ = false;
  bool begun_ = false;
};

}  // namespace settle::inline v0::http
