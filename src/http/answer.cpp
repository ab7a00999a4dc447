#include "http/answer.hpp"

#include <array>
#include <charconv>

namespace settle::inline v0::http {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_number(std::string& out, std::size_t number) {
  std::array<char, 20> digits;
  const auto done = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), done.ptr);
}

bool is_the_servers(std::string_view name) {
  switch (name.size()) {
    case 4:
      return same_name(name, "Date");
    case 10:
      return same_name(name, "Connection") || same_name(name, "Keep-Alive");
    case 14:
      return same_name(name, "Content-Length");
    case 17:
      return same_name(name, "Transfer-Encoding");
    default:
      return false;
  }
}

}  // namespace

bool may_have_body(int status) { return status != 204 && status != 304; }

void append_head(std::string& out, const response& answer, const answer_form& form) {
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<std::size_t>(answer.status));
  out.append(" ").append(reason_of(answer.status)).append("\r\n");
  append_field(out, "Date", form.date);
  for (const auto one : answer.headers)
    if (!is_the_servers(one.name)) append_field(out, one.name, one.value);
  if (form.defaults != nullptr)
    for (const auto one : *form.defaults)
      if (!answer.headers.contains(one.name)) append_field(out, one.name, one.value);
  if (may_have_body(answer.status)) {
    out.append("Content-Length: ");
    append_number(out, answer.body.size());
    out.append("\r\n");
  }
  if (form.close)
    out.append("Connection: close\r\n");
  else if (form.keep_alive_said)
    out.append("Connection: keep-alive\r\n");
  out.append("\r\n");
}

}  // namespace settle::inline v0::http
