#include "daemon/http_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <optional>
#include <thread>

#include "daemon/startup_error.hpp"
#include "settle/metrics.hpp"

namespace settle::daemon {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

// What the sessions share; lives in the server's state and outlives them.
struct shared {
  http_limits limits;
  std::vector<http_route> routes;
  environment env;
  asio::thread_pool worker{1};
  std::atomic<std::size_t> connections = 0;

  const http_route* find(std::string_view path) const {
    const auto found = std::ranges::find(routes, path, &http_route::path);
    return found == routes.end() ? nullptr : &*found;
  }
};

http_response answer_of(const http_route& route) try {
  return route.answer();
} catch (const std::exception& e) {
  return problem(500, e.what());
}

// One connection. Every callback holds it alive; it ends when none is left.
class session : public std::enable_shared_from_this<session> {
 public:
  session(tcp::socket socket, shared& with)
      : stream_(std::move(socket)),
        buffer_(with.limits.header_bytes_max + with.limits.body_bytes_max + read_ahead),
        with_(with) {
    ++with_.connections;
  }
  ~session() { --with_.connections; }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(with_.limits.header_bytes_max);
    parser_->body_limit(with_.limits.body_bytes_max);
    stream_.expires_after(with_.limits.timeout);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code failed, std::size_t) { self->on_read(failed); });
  }

 private:
  static constexpr std::size_t read_ahead = 1024;

  void on_read(error_code failed) {
    if (failed == http::error::header_limit || failed == http::error::buffer_overflow)
      return refuse(431, "the head of the request is too large");
    if (failed == http::error::body_limit) return refuse(413, "the body of the request is too large");
    if (failed == http::error::end_of_stream || failed == beast::error::timeout ||
        failed == http::error::partial_message)
      return close();
    const bool malformed =
        failed && failed.category() == http::make_error_code(http::error::bad_method).category();
    if (malformed) return refuse(400, failed.message());
    if (failed) return;
    answer();
  }

  void answer() {
    const auto& request = parser_->get();
    keep_alive_ = request.keep_alive();
    is_head_ = request.method() == http::verb::head;
    const std::string_view target(request.target().data(), request.target().size());
    const auto* route = with_.find(target.substr(0, target.find('?')));
    path_ = route == nullptr ? "other" : route->path;
    if (route == nullptr) return write(problem(404, "there is nothing at this path"));
    if (request.method() != http::verb::get && !is_head_)
      return write(problem(405, "only GET and HEAD are answered here"));
    if (!route->asks_store) return write(answer_of(*route));
    asio::post(with_.worker, [self = shared_from_this(), route] {
      auto answered = answer_of(*route);
      asio::post(self->stream_.get_executor(),
                 [self, answered = std::move(answered)] { self->write(answered); });
    });
  }

  void refuse(int status, std::string_view why) {
    keep_alive_ = false;
    path_ = "other";
    write(problem(status, why));
  }

  void write(const http_response& what) {
    const auto status = std::to_string(what.status);
    with_.env.counters->add("settle_http_requests_total", {{"path", path_}, {"status", status}});
    if (with_.env.log->enabled(log_level::debug))
      with_.env.log->write(log_level::debug, "http_request", {{"path", path_}, {"status", status}});
    response_.emplace();
    response_->result(static_cast<unsigned>(what.status));
    response_->set(http::field::content_type, what.content_type);
    response_->set(http::field::cache_control, "no-store");
    response_->set("X-Content-Type-Options", "nosniff");
    if (what.status == 405) response_->set(http::field::allow, "GET, HEAD");
    response_->keep_alive(keep_alive_);
    response_->content_length(what.body.size());
    if (!is_head_) response_->body() = what.body;
    stream_.expires_after(with_.limits.timeout);
    serializer_.emplace(*response_);
    serializer_->split(is_head_);
    const auto written = [self = shared_from_this()](error_code failed, std::size_t) {
      self->on_write(failed);
    };
    if (is_head_)
      http::async_write_header(stream_, *serializer_, written);
    else
      http::async_write(stream_, *serializer_, written);
  }

  void on_write(error_code failed) {
    if (failed) return;
    if (keep_alive_)
      read();
    else
      close();
  }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  shared& with_;
  std::string path_;
  bool keep_alive_ = false;
  bool is_head_ = false;
};

}  // namespace

http_response problem(int status, std::string_view detail) {
  const auto title = http::obsolete_reason(static_cast<http::status>(status));
  const boost::json::object about{{"type", "about:blank"},
                                  {"title", std::string_view(title.data(), title.size())},
                                  {"status", status},
                                  {"detail", detail}};
  return {status, "application/problem+json", boost::json::serialize(about) + "\n"};
}

class http_server::state {
 public:
  state(const address& where, const http_limits& limits, std::vector<http_route> routes,
        const environment& env)
      : with_{limits, std::move(routes), env}, acceptor_(io_), pause_(io_) {
    listen(where);
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }

  // The worker first: it may still post an answer to the I/O thread, which nobody will take.
  ~state() {
    io_.stop();
    thread_.join();
    with_.worker.join();
  }

  address listening_on() const {
    const auto at = acceptor_.local_endpoint();
    return {at.address().to_string(), at.port(), at.address().is_loopback()};
  }

 private:
  void listen(const address& where) try {
    const tcp::endpoint at(asio::ip::make_address(where.host), where.port);
    acceptor_.open(at.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(at);
    acceptor_.listen();
  } catch (const boost::system::system_error& e) {
    throw startup_error(fmt::format("cannot listen on {}: {}; name another address with --listen",
                                    to_text(where), e.code().message()));
  }

  void accept() {
    acceptor_.async_accept([this](error_code failed, tcp::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) return accept_later();
      if (with_.connections < with_.limits.connections_max)
        std::make_shared<session>(std::move(socket), with_)->read();
      else
        with_.env.counters->add("settle_http_refused_connections_total", {});
      accept();
    });
  }

  // Without file descriptors an accept fails at once, and again, and again.
  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code aborted) {
      if (!aborted) accept();
    });
  }

  shared with_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

http_server::http_server(const address& where, const http_limits& limits, std::vector<http_route> routes,
                         const environment& env)
    : state_(std::make_unique<state>(where, limits, std::move(routes), env)) {}
http_server::~http_server() = default;
address http_server::listening_on() const { return state_->listening_on(); }

}  // namespace settle::daemon
