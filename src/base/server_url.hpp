// [user[:password]@]host[:port][/rest]: what stands behind the scheme in the URL of a server. Parts are
// percent-decoded, an IPv6 address stands in brackets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace settle::inline v0 {

struct server_url {
  std::optional<std::string> user = {};
  std::optional<std::string> password = {};
  std::string host = {};  // empty: none is named
  std::optional<int> port = {};
  std::string_view rest = {};  // behind the slash, not decoded; views the text
};

// Why a URL cannot be read, as an error that shows an example and quotes nothing: there may be a password in
// it.
class url_reader {
 public:
  explicit url_reader(std::string_view example) : example_(example) {}

  server_url read(std::string_view behind_scheme) const;
  std::string decoded(std::string_view text) const;
  int number(std::string_view digits, int max, std::string_view what) const;
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  void read_host(std::string_view text, server_url& into) const;

  std::string_view example_;
};

}  // namespace settle::inline v0
