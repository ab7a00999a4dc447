#include "http/answer_parser.hpp"

#include <algorithm>
#include <charconv>

#include "http/characters.hpp"

namespace settle::inline v0::http {
namespace {

constexpr int status_min = 100, status_max = 599, switching_protocols = 101;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits alone, and a number that fits.
bool read_number(std::string_view text, int base, std::uint64_t& into) {
  const auto* end = text.data() + text.size();
  if (text.empty() || text.front() == '-') return false;
  const auto [rest, failed] = std::from_chars(text.data(), end, into, base);
  return failed == std::errc() && rest == end;
}

}  // namespace

void answer_parser::refuse(step how, std::string_view why) {
  reached_ = how;
  why_ = why;
}

std::size_t answer_parser::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (reached_ == step::more && taken < bytes.size()) {
    begun_ = true;
    const auto rest = bytes.substr(taken);
    const bool in_body = part_ == part::body || part_ == part::body_to_the_end || part_ == part::chunk_body;
    taken += in_body ? read_body(rest) : read_line(rest);
  }
  return taken;
}

std::size_t answer_parser::read_line(std::string_view bytes) {
  const auto end = bytes.find('\n');
  const bool whole = end != std::string_view::npos;
  const auto count = whole ? end + 1 : bytes.size();
  head_bytes_ += count;
  if (head_bytes_ > limits_.head_bytes_max) {
    refuse(step::too_large, "the head of the answer is too large");
    return count;
  }
  line_.append(bytes.substr(0, count));
  if (!whole) return count;
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r') {
    refuse(step::malformed, "a line of the answer does not end with CR LF");
    return count;
  }
  line_.resize(line_.size() - 2);
  if (is_field_value(line_))
    take_line(line_);
  else
    refuse(step::malformed, "the head of the answer has a control character");
  line_.clear();
  return count;
}

std::size_t answer_parser::read_body(std::string_view bytes) {
  if (part_ == part::body_to_the_end) {
    if (bytes.size() > limits_.body_bytes_max - answer_.body.size())
      refuse(step::too_large, "the body of the answer is too large");
    else
      answer_.body.append(bytes);
    return bytes.size();
  }
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_left_, bytes.size()));
  answer_.body.append(bytes.substr(0, count));
  bytes_left_ -= count;
  if (bytes_left_ > 0) return count;
  if (part_ == part::body)
    reached_ = step::done;
  else
    part_ = part::chunk_end;
  return count;
}

void answer_parser::take_line(std::string_view line) {
  switch (part_) {
    case part::status:
      return take_status(line);
    case part::headers:
      return line.empty() ? end_head() : take_header(line);
    case part::chunk:  // how many there are is bounded by the body
      head_bytes_ = 0;
      return take_chunk(line);
    case part::chunk_end:
      head_bytes_ = 0;
      part_ = part::chunk;
      if (!line.empty()) refuse(step::malformed, "a chunk of the answer is longer than it says");
      return;
    case part::trailer:  // could pass for headers that somebody has checked: read, and dropped
      if (line.empty())
        reached_ = step::done;
      else
        take_header(line);
      return;
    default:
      return;
  }
}

void answer_parser::take_status(std::string_view line) {
  constexpr std::string_view begin = "HTTP/1.";
  constexpr auto version_at = begin.size(), status_at = version_at + 2, status_end = status_at + 3;
  const bool is_http = line.size() >= status_end && line.starts_with(begin) &&
                       (line[version_at] == '0' || line[version_at] == '1') && line[version_at + 1] == ' ' &&
                       std::ranges::all_of(line.substr(status_at, 3), is_digit) &&
                       (line.size() == status_end || line[status_end] == ' ');
  if (!is_http) return refuse(step::malformed, "the answer is not HTTP/1.1");
  version_ = line[version_at] == '1' ? 11 : 10;
  answer_.status = 0;
  for (const char c : line.substr(status_at, 3)) answer_.status = answer_.status * 10 + (c - '0');
  if (answer_.status < status_min || answer_.status > status_max)
    return refuse(step::malformed, "the status of the answer is none");
  part_ = part::headers;
}

void answer_parser::take_header(std::string_view line) {
  const auto colon = line.find(':');
  const auto name = line.substr(0, colon);
  // A folded line begins with a blank, which no name does.
  if (colon == std::string_view::npos || !is_token(name))
    return refuse(step::malformed, "a header of the answer is malformed");
  if (++fields_ > limits_.header_count_max) return refuse(step::too_large, "the answer has too many headers");
  if (part_ == part::trailer) return;
  const auto value = trimmed(line.substr(colon + 1));
  take_framing(name, value);
  answer_.headers.add(name, value);
}

void answer_parser::take_framing(std::string_view name, std::string_view value) {
  if (same_name(name, "Content-Length")) {
    ++lengths_;
    if (!read_number(value, 10, length_))
      refuse(step::malformed, "the Content-Length of the answer is not one number");
  } else if (same_name(name, "Transfer-Encoding")) {
    ++encodings_;
    if (!same_name(value, "chunked"))
      refuse(step::malformed, "the answer has a Transfer-Encoding other than chunked");
  } else if (same_name(name, "Connection")) {
    for_each_element(value, [&](std::string_view option) {
      close_ = close_ || same_name(option, "close");
      keep_ = keep_ || same_name(option, "keep-alive");
    });
  }
}

void answer_parser::end_head() {
  if (lengths_ > 1 || encodings_ > 1 || (lengths_ > 0 && encodings_ > 0) || (encodings_ > 0 && version_ < 11))
    return refuse(step::malformed, "the answer has more than one length");
  const int status = answer_.status;
  if (status == switching_protocols)
    return refuse(step::malformed, "the answer changes to another protocol, which nobody has asked for");
  if (status < 200) {  // an answer before the answer
    if (lengths_ + encodings_ > 0) return refuse(step::malformed, "an answer before the answer has a length");
    answer_.headers.clear();
    close_ = keep_ = false;
    part_ = part::status;
    return;
  }
  keep_alive_ = !close_ && (version_ >= 11 || keep_);
  if (without_body_ || status == 204 || status == 304) {
    reached_ = step::done;
  } else if (encodings_ > 0) {
    part_ = part::chunk;
  } else if (lengths_ > 0) {
    expect_bytes(length_, part::body);
    if (reached_ == step::more && length_ == 0) reached_ = step::done;
  } else {
    keep_alive_ = false;
    part_ = part::body_to_the_end;
  }
}

void answer_parser::expect_bytes(std::uint64_t count, part then) {
  if (count > limits_.body_bytes_max - answer_.body.size())
    return refuse(step::too_large, "the body of the answer is too large");
  bytes_left_ = count;
  part_ = then;
}

void answer_parser::take_chunk(std::string_view line) {
  const auto size = trimmed(line.substr(0, line.find(';')));
  std::uint64_t count = 0;
  if (!read_number(size, 16, count)) return refuse(step::malformed, "a chunk of the answer has no size");
  if (count == 0)
    part_ = part::trailer;
  else
    expect_bytes(count, part::chunk_body);
}

answer_parser::step answer_parser::end() {
  if (reached_ == step::more && part_ == part::body_to_the_end) reached_ = step::done;
  return reached_;
}

}  // namespace settle::inline v0::http
