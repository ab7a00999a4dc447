#include "kafka/client.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <stop_token>
#include <string_view>
#include <thread>

#include "base/pause.hpp"
#include "kafka/failure.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr int syslog_warning = 4;

std::string milliseconds(duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

client::settings settings_of(const address& to, const options& with) {
  client::settings all{
      {"bootstrap.servers", to.list()},
      {"client.id", "settle"},
      {"allow.auto.create.topics", "false"},
      {"socket.connection.setup.timeout.ms",
       milliseconds(std::max<duration>(with.connect_timeout, std::chrono::seconds(1)))},
      {"socket.timeout.ms",
       milliseconds(std::max<duration>(2 * with.connect_timeout, std::chrono::seconds(2)))},
      {"socket.keepalive.enable", "true"},
      {"socket.nagle.disable", "true"},
      {"reconnect.backoff.max.ms", "1000"},
      {"log.connection.close", "false"},
      {"security.protocol",
       to.user.empty() ? (to.tls ? "ssl" : "plaintext") : (to.tls ? "sasl_ssl" : "sasl_plaintext")},
  };
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) all.emplace_back(name, value);
  };
  if (!to.user.empty()) add("sasl.mechanisms", with.sasl_mechanism);
  add("sasl.username", to.user);
  add("sasl.password", to.password);
  if (to.tls) {
    add("ssl.ca.location", with.ca_file);
    add("ssl.certificate.location", with.certificate_file);
    add("ssl.key.location", with.key_file);
    add("ssl.key.password", with.key_password);
  }
  for (const auto& [name, value] : with.security) add(name.c_str(), value);
  if (!with.through.empty()) add("broker.address.family", "v4");
  return all;
}

// What the library says of a refused setting quotes its value, which may be a password.
void set(rd_kafka_conf_t* in, const std::string& name, const std::string& value) {
  char said[256];
  if (rd_kafka_conf_set(in, name.c_str(), value.c_str(), said, sizeof said) == RD_KAFKA_CONF_OK) return;
  throw error(errc::invalid_argument, fmt::format("this librdkafka does not take the setting {}", name));
}

sockaddr_in resolved(const std::string& host_and_port) {
  const auto colon = host_and_port.rfind(':');
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (colon == std::string::npos || ::getaddrinfo(host_and_port.substr(0, colon).c_str(),
                                                  host_and_port.c_str() + colon + 1, &wanted, &found) != 0)
    throw error(errc::invalid_argument, "kafka::options.through is no host:port with an IPv4 address");
  const std::unique_ptr<addrinfo, destroyer<::freeaddrinfo>> owner(found);
  sockaddr_in first{};
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), sizeof first, reinterpret_cast<char*>(&first));
  return first;
}

}  // namespace

client::client(const address& to, const options& with, rd_kafka_type_t type, const settings& more,
               listener* told)
    : name_(to.name()), env_(with.env), told_(told) {
  if (!with.through.empty()) through_ = resolved(with.through);
  std::unique_ptr<rd_kafka_conf_t, destroyer<rd_kafka_conf_destroy>> conf(rd_kafka_conf_new());
  for (const auto& [name, value] : settings_of(to, with)) set(conf.get(), name, value);
  for (const auto& [name, value] : more) set(conf.get(), name, value);
  rd_kafka_conf_set_opaque(conf.get(), this);
  if (!with.through.empty()) rd_kafka_conf_set_connect_cb(conf.get(), &client::connect_through);
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t* of, int level, const char*, const char* said) {
    static_cast<client*>(rd_kafka_opaque(of))->note(level, said);
  });
  rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int, const char* said, void* self) {
    static_cast<client*>(self)->note(syslog_warning, said);
  });
  if (told != nullptr && type == RD_KAFKA_PRODUCER)
    rd_kafka_conf_set_dr_msg_cb(conf.get(), [](rd_kafka_t*, const rd_kafka_message_t* sent, void* self) {
      static_cast<client*>(self)->told_->reported(*sent);
    });
  if (told != nullptr && type == RD_KAFKA_CONSUMER)
    rd_kafka_conf_set_rebalance_cb(
        conf.get(), [](rd_kafka_t*, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* of,
                       void* self) { static_cast<client*>(self)->told_->rebalanced(what, *of); });
  char said[256] = "";
  handle_ = rd_kafka_new(type, conf.get(), said, sizeof said);
  if (handle_ == nullptr) throw error(errc::invalid_argument, fmt::format("librdkafka: {}", said));
  (void)conf.release();  // the client's own from here on
}

client::~client() { rd_kafka_destroy_flags(handle_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); }

void client::abandon(std::unique_ptr<client> of) {
  {
    const std::scoped_lock lock(of->mutex_);
    of->is_abandoned_ = true;
  }
  of->told_ = nullptr;
  std::thread([ended = std::move(of)]() mutable { ended.reset(); }).detach();
}

int client::connect_through(int socket, const sockaddr*, int, const char*, void* self) {
  const auto& to = static_cast<client*>(self)->through_;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return 0;
  return errno == EINPROGRESS ? 0 : errno;
}

void client::note(int level, const char* said) {
  const std::scoped_lock lock(mutex_);
  if (is_abandoned_) return;
  const bool is_advice = std::string_view(said).find("Configuration property") != std::string_view::npos;
  if (level <= syslog_warning && !is_advice) last_said_ = said;
  env_.log->write(log_level::debug, "kafka_client_said", {{"broker", name_}, {"text", said}});
}

std::string client::complaint(const std::string& what) const {
  const std::scoped_lock lock(mutex_);
  return last_said_.empty() ? fmt::format("{}: {}", name_, what)
                            : fmt::format("{}: {}; last: {}", name_, what, last_said_);
}

void client::judge(rd_kafka_resp_err_t answer, const limit& within, const std::string& about) const {
  if (!is_passing(answer) || within.is_over())
    throw refused(answer, complaint(fmt::format("{}: {}", about, text_of(answer))));
  constexpr duration before_the_next = std::chrono::milliseconds(20);
  pause(std::min<duration>(before_the_next, within.left()), within.stop);
}

event_handle client::await(rd_kafka_queue_t& at, const limit& within, const std::string& about) const {
  const std::stop_callback wake(within.stop, [&] { rd_kafka_queue_yield(&at); });
  while (!within.is_over())
    if (event_handle came{rd_kafka_queue_poll(&at, static_cast<int>(within.at_most(slice).left().count()))})
      return came;
  throw refused(RD_KAFKA_RESP_ERR__TIMED_OUT, complaint(about + ": no answer"));
}

}  // namespace settle::inline v0::kafka
