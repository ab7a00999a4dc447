#include "postgres/settings.hpp"

#include <fmt/format.h>

#include <map>

#include "postgres/handle.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

using keyword_map = std::map<std::string, std::string>;

// A line that is cut without a word is noticed after about a minute when idle (keepalives), and after half
// a minute when something was sent (user timeout). PostgreSQL's own defaults are the kernel's: two hours.
const keyword_map unless_given{{"fallback_application_name", "settle"},
                               {"keepalives_idle", "30"},
                               {"keepalives_interval", "10"},
                               {"keepalives_count", "3"},
                               {"tcp_user_timeout", "30000"}};

keyword_map read(const PQconninfoOption* options) {
  keyword_map found;
  for (const auto* one = options; one != nullptr && one->keyword != nullptr; ++one)
    if (one->val != nullptr) found[one->keyword] = one->val;
  return found;
}

std::string describe(const keyword_map& given) {
  auto all = read(option_list(PQconndefaults()).get());
  for (const auto& [keyword, text] : given) all[keyword] = text;
  const auto host = all["host"].empty() ? all["hostaddr"] : all["host"];
  return fmt::format("database {} at {}:{}", all["dbname"].empty() ? all["user"] : all["dbname"],
                     host.empty() ? "localhost" : host, all["port"]);
}

option_list parse(const std::string& conninfo) {
  char* why = nullptr;
  option_list parsed(PQconninfoParse(conninfo.c_str(), &why));
  if (why != nullptr) PQfreemem(why);  // it quotes the string
  if (!parsed)
    throw error(errc::invalid_argument,
                "the connection string cannot be read: it is 'host=… dbname=… user=…' or 'postgresql://…' "
                "(PostgreSQL's documentation: libpq, connection strings)");
  return parsed;
}

std::string quoted(const std::string& text) {
  if (!text.empty() && text.find_first_of(" '\\") == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

}  // namespace

settings read_conninfo(const std::string& conninfo) {
  auto given = read(parse(conninfo).get());
  settings made;
  made.name = describe(given);
  given.insert(unless_given.begin(), unless_given.end());
  given["client_encoding"] = "UTF8";
  made.keywords.assign(given.begin(), given.end());
  return made;
}

std::string without_secrets(const std::string& conninfo) {
  const auto parsed = parse(conninfo);
  std::string out;
  for (const auto* one = parsed.get(); one->keyword != nullptr; ++one) {
    const bool secret = std::string_view(one->dispchar) == "*";  // how libpq asks dialogs to hide it
    if (one->val == nullptr || secret) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", one->keyword, quoted(one->val));
  }
  return out;
}

}  // namespace settle::inline v0::postgres
