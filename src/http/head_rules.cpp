#include "http/head_rules.hpp"

#include <charconv>

#include "http/characters.hpp"

namespace settle::inline v0::http {
namespace {

struct seen {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;
  bool close = false;
  bool keep = false;
};

refusal read_length(std::string_view text, framing& into) {
  const auto* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, into.content_length);
  if (text.empty() || text.front() == '-' || failed != std::errc() || rest != end)
    return {400, "length_invalid", "Content-Length is not one number"};
  return {};
}

refusal read_encoding(std::string_view text, framing& into) {
  if (same_name(text, "chunked")) {
    into.chunked = true;
    return {};
  }
  const auto comma = text.rfind(',');
  const auto last = comma == std::string_view::npos ? text : trimmed(text.substr(comma + 1));
  if (!same_name(last, "chunked"))
    return {400, "encoding_invalid", "Transfer-Encoding does not end with chunked"};
  return {501, "encoding_unknown", "no Transfer-Encoding but chunked is understood"};
}

refusal read_one(const field& one, seen& so_far, framing& into) {
  if (same_name(one.name, "Host")) {
    ++so_far.hosts;
    if (!is_authority(one.value)) return {400, "host_invalid", "Host is not a host"};
  } else if (same_name(one.name, "Content-Length")) {
    ++so_far.lengths;
    return read_length(one.value, into);
  } else if (same_name(one.name, "Transfer-Encoding")) {
    ++so_far.encodings;
    return read_encoding(one.value, into);
  } else if (same_name(one.name, "Connection")) {
    for_each_element(one.value, [&](std::string_view option) {
      so_far.close = so_far.close || same_name(option, "close");
      so_far.keep = so_far.keep || same_name(option, "keep-alive");
    });
  } else if (same_name(one.name, "Expect")) {
    if (!same_name(one.value, "100-continue"))
      return {417, "expectation_unknown", "only 100-continue can be expected"};
    into.expects_continue = true;
  }
  return {};
}

}  // namespace

refusal read_framing(int version, const header_list& headers, framing& into) {
  into = {};
  seen all;
  for (const auto one : headers)
    if (const auto refused = read_one(one, all, into)) return refused;
  if (all.hosts > 1 || (all.hosts == 0 && version >= 11))
    return {400, "host_invalid", "there must be one Host header"};
  if (all.lengths > 1) return {400, "length_invalid", "Content-Length is there more than once"};
  if (all.encodings > 1) return {400, "encoding_invalid", "Transfer-Encoding is there more than once"};
  if (all.lengths > 0 && all.encodings > 0)
    return {400, "length_ambiguous", "Content-Length and Transfer-Encoding exclude each other"};
  if (all.encodings > 0 && version < 11)
    return {400, "encoding_invalid", "HTTP/1.0 has no Transfer-Encoding"};
  into.keep_alive = !all.close && (version >= 11 || all.keep);
  into.expects_continue = into.expects_continue && version >= 11 && into.has_body();
  return {};
}

}  // namespace settle::inline v0::http
