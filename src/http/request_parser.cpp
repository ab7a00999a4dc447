#include "http/request_parser.hpp"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <optional>

#include "http/characters.hpp"

namespace settle::inline v0::http {
namespace {

namespace beast = boost::beast;
using beast::http::error;
using boost::system::error_code;
using text_view = beast::string_view;

std::string_view view(text_view text) { return {text.data(), text.size()}; }

constexpr refusal line_too_long{414, "target_too_long", "the request line is too long"};
constexpr refusal malformed{400, "request_malformed", "this is not an HTTP/1.1 request"};

// Takes what Beast has parsed, and refuses what Beast would let pass.
class beast_parser final : public beast::http::basic_parser<true> {
 public:
  beast_parser(const parser_limits& limits, request& into) : limits_(limits), into_(into) {
    // Beast stops a few bytes before its limit if they come one by one. Ours is counted in read_head().
    this->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max + 8));
    this->body_limit(boost::none);
    this->eager(false);
  }

  void give(std::string_view bytes) {
    input_ = bytes;
    has_chunk_header_ = false;
  }
  void limit_body(std::size_t bytes_max) { body_bytes_max_ = bytes_max; }
  const refusal& refused() const { return refused_; }
  int version() const { return version_; }
  bool has_line() const { return version_ != 0; }
  bool has_chunk_header() const { return has_chunk_header_; }  // in what was given last
  bool awaits_chunk_header() const { return chunked() && chunk_bytes_left_ == 0; }

 private:
  void refuse(const refusal& why, error_code& failed) {
    refused_ = why;
    failed = error::bad_value;
  }

  // Beast joins folded lines. Others do not join them, and see another header: another length, say. Joined
  // lines are in a buffer of Beast's own; but if the first ones are empty, the value is a later one as it is.
  bool is_folded(text_view name, text_view value) const {
    const bool copied = value.data() < input_.data() || value.data() >= input_.data() + input_.size();
    if (copied) return true;
    const auto* const begin = name.data() + name.size();
    const std::string_view between(begin, static_cast<std::size_t>(value.data() - begin));
    return between.find_first_of("\r\n") != std::string_view::npos;
  }

  void on_request_impl(beast::http::verb, text_view method, text_view target, int version,
                       error_code& failed) override {
    constexpr std::size_t beside = std::string_view("  HTTP/1.1").size();
    if (method.size() + target.size() + beside > limits_.request_line_bytes_max)
      return refuse(line_too_long, failed);
    version_ = version;
    into_.method.assign(view(method));
    into_.target.assign(view(target));
  }

  void on_field_impl(beast::http::field, text_view name, text_view value, error_code& failed) override {
    if (is_folded(name, value))
      return refuse({400, "header_folded", "a header goes on in a second line"}, failed);
    if (++fields_ > limits_.header_count_max)
      return refuse({431, "headers_too_many", "there are too many headers"}, failed);
    // Fields behind a chunked body could pass for headers that somebody has checked.
    if (!is_header_done()) into_.headers.add(view(name), view(value));
  }

  void on_header_impl(error_code&) override {}
  void on_response_impl(int, text_view, int, error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  std::size_t on_body_impl(text_view bytes, error_code&) override {
    into_.body.append(view(bytes));
    return bytes.size();
  }

  void on_chunk_header_impl(std::uint64_t size, text_view extension, error_code& failed) override {
    has_chunk_header_ = true;
    // In quotes Beast lets everything pass, also a line feed, which others take for the end of the line.
    if (!is_field_value(view(extension)))
      return refuse({400, "chunk_malformed", "a chunk's extension has control characters"}, failed);
    if (size > body_bytes_max_ - into_.body.size())
      return refuse({413, "body_too_large", "the body is too large"}, failed);
    chunk_bytes_left_ = size;
  }

  std::size_t on_chunk_body_impl(std::uint64_t, text_view bytes, error_code&) override {
    chunk_bytes_left_ -= bytes.size();
    into_.body.append(view(bytes));
    return bytes.size();
  }

  const parser_limits& limits_;
  request& into_;
  std::string_view input_;
  std::size_t body_bytes_max_ = 0;
  std::size_t fields_ = 0;
  int version_ = 0;
  bool has_chunk_header_ = false;
  std::uint64_t chunk_bytes_left_ = 0;
  refusal refused_;
};

bool has_bare_line_feed(std::string_view text) {
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    if (at == 0 || text[at - 1] != '\r') return true;
  return false;
}

// A first line that is right but for its version.
bool names_another_version(std::string_view line) {
  const auto at = line.rfind(" HTTP/");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (std::ranges::count(line, ' ') != 2) return false;
  return at != std::string_view::npos && line.size() == at + 9 && is_digit(line[at + 6]) &&
         line[at + 7] == '.' && is_digit(line[at + 8]);
}

refusal refusal_for(const error_code& failed, std::string_view bytes) {
  if (failed == error::header_limit) return {431, "headers_too_large", "the headers are too large"};
  if (failed == error::bad_version && names_another_version(bytes.substr(0, bytes.find("\r\n"))))
    return {505, "version_unknown", "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  if (failed == error::bad_content_length || failed == error::multiple_content_length)
    return {400, "length_invalid", "Content-Length is not one number, or not the only length"};
  if (failed == error::bad_transfer_encoding)
    return {400, "encoding_invalid", "Transfer-Encoding is there twice, or beside Content-Length"};
  if (failed == error::bad_chunk || failed == error::bad_chunk_extension)
    return {400, "chunk_malformed", "a chunk of the body is malformed"};
  return malformed;
}

}  // namespace

class request_parser::state {
 public:
  explicit state(const parser_limits& limits) : limits_(limits) {}

  void begin(request& into) {
    parser_.emplace(limits_, into);
    head_bytes_ = 0;
    is_begun_ = head_is_given_ = line_is_skipped_ = false;
  }

  progress feed(std::string_view bytes) {
    progress made;
    while (made.reached == step::more && !made.refused) {
      const auto rest = bytes.substr(made.consumed);
      if (parser_->is_header_done() && head_is_given_) {
        if (parser_->is_done())
          made.reached = step::done;
        else if (!read_body(rest, made))
          break;
      } else if (!read_head(rest, made)) {
        break;
      }
    }
    return made;
  }

  beast_parser& parser() { return *parser_; }
  const beast_parser& parser() const { return *parser_; }
  bool is_begun() const { return is_begun_; }

 private:
  // False: more bytes are needed.
  bool read_head(std::string_view bytes, progress& made) {
    if (bytes.empty()) return false;
    // An empty line before a request is what some clients leave behind the one before (RFC 9112, 2.2). With
    // more of them a connection could be kept open for ever.
    if (!is_begun_ && !line_is_skipped_ && bytes.front() == '\r') {
      if (bytes.size() < 2) return false;
      line_is_skipped_ = bytes[1] == '\n';
      if (line_is_skipped_) bytes.remove_prefix(2), made.consumed += 2;
    }
    if (bytes.empty()) return false;
    is_begun_ = true;
    error_code failed;
    const auto consumed = put(bytes, failed);
    made.consumed += consumed;
    head_bytes_ += consumed;
    const auto rest = bytes.substr(consumed);
    if (parser_->refused())
      made.refused = parser_->refused();
    else if (failed && failed != error::need_more)
      made.refused = refusal_for(failed, bytes);
    else if (failed)
      made.refused = trouble_ahead(rest);
    else
      made.refused = trouble_behind();
    if (failed || made.refused) return failed != error::need_more;
    if (!parser_->is_header_done()) return true;
    made.reached = step::head;
    head_is_given_ = true;
    return true;
  }

  // Without an end in sight.
  refusal trouble_ahead(std::string_view rest) const {
    const auto line_bytes_max = limits_.request_line_bytes_max + 2;  // with its end
    if (!parser_->has_line() && rest.size() >= line_bytes_max && rest.find('\n') >= line_bytes_max)
      return line_too_long;
    if (head_bytes_ + rest.size() > limits_.header_bytes_max)
      return {431, "headers_too_large", "the headers are too large"};
    if (has_bare_line_feed(rest)) return {400, "line_malformed", "lines end with CR LF"};
    return {};
  }

  refusal trouble_behind() const {
    if (head_bytes_ <= limits_.header_bytes_max) return {};
    return {431, "headers_too_large", "the headers are too large"};
  }

  bool read_body(std::string_view bytes, progress& made) {
    // Where a chunk begins there are at least "0 CR LF CR LF" to come. Beast asserts that it gets as much.
    if (bytes.size() < (parser_->awaits_chunk_header() ? 5 : 1)) return false;
    error_code failed;
    const auto consumed = put(bytes, failed);
    made.consumed += consumed;
    const auto header_bytes = failed ? bytes.size() : parser_->has_chunk_header() ? consumed : 0;
    if (parser_->refused())
      made.refused = parser_->refused();
    else if (failed && failed != error::need_more)
      made.refused = refusal_for(failed, bytes);
    else if (header_bytes > limits_.header_bytes_max)
      made.refused = {400, "chunk_malformed", "a chunk's header or the trailer is too large"};
    else if (failed && has_bare_line_feed(bytes))
      made.refused = {400, "line_malformed", "lines end with CR LF"};
    return failed != error::need_more || made.refused;
  }

  std::size_t put(std::string_view bytes, error_code& failed) {
    parser_->give(bytes);
    return parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), failed);
  }

  parser_limits limits_;
  std::optional<beast_parser> parser_;
  std::size_t head_bytes_ = 0;
  bool is_begun_ = false;
  bool line_is_skipped_ = false;
  bool head_is_given_ = false;
};

request_parser::request_parser(const parser_limits& limits) : state_(std::make_unique<state>(limits)) {}
request_parser::~request_parser() = default;
void request_parser::begin(request& into) { state_->begin(into); }
request_parser::progress request_parser::feed(std::string_view bytes) { return state_->feed(bytes); }
void request_parser::limit_body(std::size_t bytes_max) { state_->parser().limit_body(bytes_max); }
int request_parser::version() const { return state_->parser().version(); }
bool request_parser::is_begun() const { return state_->is_begun(); }

}  // namespace settle::inline v0::http
