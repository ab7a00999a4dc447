#include "postgres/sql_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>

namespace settle::inline v0::postgres {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}
bool continues_word(char c) {
  return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '$';
}

// Walks over a text piece by piece: a word, a literal, a comment, or one other character.
class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }

  // Steps over one piece; a word is returned, in lower case.
  std::string next() {
    const char c = text_[at_];
    if (skip_comment()) return {};
    if (c == '\'') return skip_quoted('\'', false);
    if (c == '"') return skip_quoted('"', false);
    if (c == '$' && skip_dollar_quoted()) return {};
    if (starts_word(c)) return word();
    ++at_;
    return {};
  }

  bool skip_comment() {
    const auto rest = text_.substr(at_);
    if (rest.starts_with("--")) {
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      return true;
    }
    if (!rest.starts_with("/*")) return false;
    int depth = 0;  // PostgreSQL's comments nest
    do {
      const auto here = text_.substr(at_, 2);
      if (here == "/*") ++depth;
      if (here == "*/") --depth;
      at_ += here == "/*" || here == "*/" ? 2 : 1;
    } while (depth > 0 && !done());
    return true;
  }

 private:
  std::string word() {
    const auto from = at_;
    while (!done() && continues_word(peek())) ++at_;
    const auto found = text_.substr(from, at_ - from);
    if ((found == "e" || found == "E") && !done() && peek() == '\'') return skip_quoted('\'', true);
    std::string lower(found);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return lower;
  }

  std::string skip_quoted(char quote, bool backslashes) {
    ++at_;
    while (!done() && peek() != quote) at_ += backslashes && peek() == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());  // a doubled quote begins the next literal at once: the same end
    return {};
  }

  bool skip_dollar_quoted() {
    auto end = at_ + 1;
    if (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) return false;  // $1
    while (end < text_.size() && continues_word(text_[end]) && text_[end] != '$') ++end;
    if (end >= text_.size() || text_[end] != '$') return false;
    const auto tag = text_.substr(at_, end - at_ + 1);
    const auto close = text_.find(tag, end + 1);
    at_ = close == std::string_view::npos ? text_.size() : close + tag.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// A word in lower case, or what stands between double quotes, or another character.
struct piece {
  enum class kind { word, quoted, other };
  kind what = kind::other;
  std::string text = {};
  bool is(std::string_view keyword) const { return what == kind::word && text == keyword; }
};

// The first pieces of a statement; spaces, comments, and empty statements before it are passed over.
std::vector<piece> first_pieces(std::string_view sql, std::size_t most) {
  std::vector<piece> found;
  found.reserve(most);
  scanner in(sql);
  while (found.size() < most && !in.done()) {
    const auto from = in.at();
    const char c = in.peek();
    if (in.skip_comment()) continue;
    auto word = in.next();
    if (is_space(c) || (c == ';' && found.empty())) continue;
    if (!word.empty())
      found.push_back({piece::kind::word, std::move(word)});
    else if (c == '"' && in.at() - from > 2)
      found.push_back({piece::kind::quoted, std::string(sql.substr(from + 1, in.at() - from - 2))});
    else
      found.push_back({piece::kind::other, std::string(1, c)});
  }
  return found;
}

// The words with which a statement begins.
std::array<std::string, 3> first_words(std::string_view sql, std::size_t most = 3) {
  std::array<std::string, 3> words;
  const auto pieces = first_pieces(sql, std::min(most, words.size()));
  for (std::size_t i = 0; i < pieces.size() && pieces[i].what == piece::kind::word; ++i)
    words[i] = pieces[i].text;
  return words;
}

// The name that ends a statement; empty if it is none, or more follows.
std::string last_name(std::span<const piece> rest) {
  if (rest.size() == 2 && rest[1].text == ";") rest = rest.first(1);
  if (rest.size() != 1 || rest[0].what == piece::kind::other) return {};
  return rest[0].text;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> these) {
  return std::ranges::find(these, word) != these.end();
}

}  // namespace

bool concerns_transaction(std::string_view sql) {
  return one_of(first_words(sql, 1)[0], {"begin", "start", "commit", "end", "abort", "prepare", "rollback",
                                         "savepoint", "release", "set"});
}

bool names_prepared_statement(std::string_view sql) {
  return one_of(first_words(sql, 1)[0], {"execute", "prepare", "deallocate"});
}

bool returns_to_savepoint(std::string_view sql) {
  const auto [first, second, third] = first_words(sql);
  return first == "rollback" &&
         (second == "to" || (one_of(second, {"work", "transaction"}) && third == "to"));
}

std::optional<sql::savepoint_step> savepoint_step_of(std::string_view sql) {
  using kind = sql::savepoint_step::kind;
  const auto all = first_pieces(sql, 7);
  std::span<const piece> rest(all);
  const auto take = [&](std::string_view keyword) {
    const bool there = !rest.empty() && rest[0].is(keyword);
    if (there) rest = rest.subspan(1);
    return there;
  };
  if (take("savepoint")) return {{kind::set, last_name(rest)}};
  if (take("release")) {
    take("savepoint");
    return {{kind::release, last_name(rest)}};
  }
  if (!returns_to_savepoint(sql)) return std::nullopt;
  while (!take("to")) rest = rest.subspan(1);
  take("savepoint");
  return {{kind::roll_back, last_name(rest)}};
}

bool sets_transaction(std::string_view sql) {
  const auto [first, second, third] = first_words(sql);
  const auto& what = one_of(second, {"local", "session"}) ? third : second;
  return first == "set" && one_of(what, {"transaction", "transaction_read_only", "transaction_isolation",
                                         "transaction_deferrable"});
}

bool controls_transaction(std::string_view sql) {
  const auto [first, second, third] = first_words(sql);
  if (one_of(first, {"begin", "start", "commit", "end", "abort"})) return true;
  if (first == "prepare") return second == "transaction";
  return first == "rollback" && !returns_to_savepoint(sql);
}

std::vector<std::string_view> split_script(std::string_view sql) {
  std::vector<std::string_view> statements;
  scanner in(sql);
  std::size_t from = 0;
  int parentheses = 0, blocks = 0;  // a function's BEGIN ATOMIC … END holds statements of its own
  bool empty = true, creates = false;
  const auto cut = [&](std::size_t end) {
    if (!empty) statements.push_back(sql.substr(from, end - from));
    from = in.at();
    parentheses = blocks = 0;
    empty = true;
    creates = false;
  };
  while (!in.done()) {
    const auto start = in.at();
    const char c = in.peek();
    const bool is_comment = in.skip_comment();
    if (is_comment) continue;
    const auto word = in.next();
    if (c == ';' && parentheses == 0 && blocks == 0) {
      cut(start);
      continue;
    }
    if (empty && word == "create") creates = true;
    if (creates && one_of(word, {"begin"})) ++blocks;
    if (blocks > 0 && word == "case") ++blocks;
    if (blocks > 0 && word == "end") --blocks;
    if (c == '(') ++parentheses;
    if (c == ')' && parentheses > 0) --parentheses;
    if (!is_space(c)) empty = false;
  }
  cut(sql.size());
  return statements;
}

}  // namespace settle::inline v0::postgres
