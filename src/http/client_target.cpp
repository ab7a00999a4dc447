#include "http/client_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "http/characters.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::string_view plain = "http://", secure = "https://";

[[noreturn]] void refuse(std::string_view why) {
  throw error(errc::invalid_argument, fmt::format("not a URL like https://host/path: {}", why));
}

void read_authority(std::string_view text, client_target& into) {
  // A user and a password would end in logs; there are headers for them.
  if (text.find('@') != std::string_view::npos) refuse("there is a user in it");
  if (text.empty() || !is_authority(text)) refuse("the host is none");
  const bool bracketed = text.front() == '[';
  const auto end = bracketed ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  into.authority = text;
  into.host = bracketed ? text.substr(1, end - 2) : text.substr(0, end);
  into.port = into.tls ? 443 : 80;
  const auto port = end < text.size() ? text.substr(end + 1) : std::string_view();
  if (!port.empty()) std::from_chars(port.data(), port.data() + port.size(), into.port);
  if (into.port == 0) refuse("the port is none");
}

}  // namespace

std::string client_target::origin() const { return fmt::format("{}{}:{}", tls ? secure : plain, host, port); }

client_target read_target(std::string_view url) {
  client_target made;
  made.tls = url.starts_with(secure);
  if (!made.tls && !url.starts_with(plain)) refuse("it begins with neither http:// nor https://");
  url.remove_prefix(made.tls ? secure.size() : plain.size());
  const bool visible = std::ranges::all_of(url, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (!visible) refuse("a blank, a fragment or a byte that is not ASCII, which has to be percent-encoded");
  const auto end = std::min(url.find_first_of("/?"), url.size());
  read_authority(url.substr(0, end), made);
  made.path = url.substr(end);
  if (!made.path.starts_with('/')) made.path.insert(0, "/");
  return made;
}

}  // namespace settle::inline v0::http
