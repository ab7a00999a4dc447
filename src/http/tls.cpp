#include "http/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

std::string last_reason() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "TLS failed";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

bool is_address(const std::string& host) {
  in6_addr number{};
  return ::inet_pton(AF_INET, host.c_str(), &number) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &number) == 1;
}

}  // namespace

void tls_context::release::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }
void tls_session::release::operator()(ssl_st* session) const noexcept { SSL_free(session); }

tls_context::tls_context(const client_options& options)
    : context_(SSL_CTX_new(TLS_client_method())), verifies_(options.verify_server) {
  auto* context = context_.get();
  const auto require = [](bool done, std::string_view what) {
    if (!done) throw error(errc::invalid_argument, fmt::format("client_options.{}: {}", what, last_reason()));
  };
  require(context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1, "TLS");
  const bool trusted = options.ca_file.empty()
                           ? SSL_CTX_set_default_verify_paths(context) == 1
                           : SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) == 1;
  require(trusted, "ca_file");
  if (!options.certificate_file.empty() || !options.key_file.empty()) {
    require(SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) == 1,
            "certificate_file");
    require(SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) == 1,
            "key_file");
  }
  SSL_CTX_set_verify(context, verifies_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
}

tls_session::tls_session(const tls_context& of, const std::string& host) : session_(SSL_new(of.get())) {
  auto* session = session_.get();
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (session == nullptr || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    throw error(errc::destination_unavailable, "TLS: " + last_reason());
  }
  BIO_set_mem_eof_return(in, -1);
  SSL_set_bio(session, in, out);  // they are its own now
  SSL_set_connect_state(session);
  bool named = true;
  if (is_address(host)) {
    if (of.verifies()) named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  } else {
    named = SSL_set_tlsext_host_name(session, host.c_str()) == 1;
    if (of.verifies()) named = named && SSL_set1_host(session, host.c_str()) == 1;
  }
  if (!named) throw error(errc::destination_unavailable, "TLS: " + last_reason());
}

tls_session::step tls_session::judge(int done) {
  const int wants = SSL_get_error(session_.get(), done);
  if (wants == SSL_ERROR_WANT_READ || wants == SSL_ERROR_WANT_WRITE) return step::more;
  if (wants == SSL_ERROR_ZERO_RETURN) return step::ended;
  reason_ = last_reason();
  if (const auto verified = SSL_get_verify_result(session_.get()); verified != X509_V_OK)
    reason_ += fmt::format(" ({})", X509_verify_cert_error_string(verified));
  return step::failed;
}

tls_session::step tls_session::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(session_.get());
  return done == 1 ? step::done : judge(done);
}

tls_session::step tls_session::seal(std::string_view bytes) {
  constexpr std::size_t piece_max = std::size_t{1} << 20;
  ERR_clear_error();
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, piece_max);
    const int done = SSL_write(session_.get(), piece.data(), static_cast<int>(piece.size()));
    if (done <= 0) return judge(done);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return step::done;
}

void tls_session::give(std::string_view sealed) {
  BIO_write(SSL_get_rbio(session_.get()), sealed.data(), static_cast<int>(sealed.size()));
}

tls_session::step tls_session::open(std::string& into) {
  char buffer[16 * 1024];  // what a record holds
  ERR_clear_error();
  while (true) {
    const int done = SSL_read(session_.get(), buffer, sizeof buffer);
    if (done <= 0) return judge(done);
    into.append(buffer, static_cast<std::size_t>(done));
  }
}

void tls_session::take(std::string& into) {
  BIO* out = SSL_get_wbio(session_.get());
  const auto size = BIO_ctrl_pending(out);
  if (size == 0) return;
  const auto at = into.size();
  into.resize(at + size);
  const int taken = BIO_read(out, into.data() + at, static_cast<int>(size));
  into.resize(at + static_cast<std::size_t>(std::max(taken, 0)));
}

bool tls_session::is_quiet() const {
  return SSL_pending(session_.get()) == 0 && BIO_ctrl_pending(SSL_get_rbio(session_.get())) == 0;
}

}  // namespace settle::inline v0::http
