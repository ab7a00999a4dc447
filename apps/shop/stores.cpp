#include "stores.hpp"

#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#ifdef SHOP_POSTGRES
#include "settle/postgres.hpp"
#endif
#ifdef SHOP_RABBITMQ
#include "settle/rabbitmq.hpp"
#endif
#ifdef SHOP_KAFKA
#include "settle/kafka.hpp"
#endif

namespace shop {
namespace {

bool begins(const std::string& where, const char* scheme) {
  const std::string name = scheme;
  return where.starts_with(name + "://") || where.starts_with(name + "s://");
}

[[noreturn, maybe_unused]] void not_built(const std::string& driver) {
  throw settle::error(settle::errc::invalid_argument,
                      "this shop was built with a Settle that has no driver for " + driver);
}

}  // namespace

std::unique_ptr<settle::database> open_database(const std::string& where, const settle::environment& env) {
  const bool is_postgres = where.starts_with("postgres://") || where.starts_with("postgresql://") ||
                           where.find('=') != std::string::npos;
  if (!is_postgres) return settle::sqlite::open(where, {.env = env});
#ifdef SHOP_POSTGRES
  return settle::postgres::open(where, {.env = env, .connections_max = 12});
#else
  not_built("postgres");
#endif
}

std::unique_ptr<settle::broker> open_broker(const std::string& where, const settle::environment& env) {
  if (begins(where, "amqp")) {
#ifdef SHOP_RABBITMQ
    return settle::rabbitmq::open(where, {.env = env});
#else
    not_built("rabbitmq");
#endif
  }
  if (begins(where, "kafka")) {
#ifdef SHOP_KAFKA
    return settle::kafka::open(where, {.env = env});
#else
    not_built("kafka");
#endif
  }
  return settle::sqlite::open_broker(where, {.env = env, .lease_ttl = std::chrono::seconds(3)});
}

}  // namespace shop
