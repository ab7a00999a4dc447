// What a host says about its work: counts, log lines, and the event that asks a person for help.
#pragma once

#include <mutex>
#include <string>

#include "saga/instance.hpp"
#include "settle/database.hpp"
#include "settle/saga.hpp"

namespace settle::sagas {

class reporting {
 public:
  reporting(const environment& env, std::string host) : env_(env), host_(std::move(host)) {}

  // Of a saga that went on, after the commit.
  void went_on(const instance& of);
  void tick_ended();
  void tick_failed(const std::string& why) const;
  void order_refused(const instance& of, const std::string& why) const;
  void round_failed(const std::string& why) const;

  saga_counts counts() const;

 private:
  void ended(const instance& of);

  const environment& env_;
  std::string host_;
  mutable std::mutex mutex_;
  saga_counts counts_;
};

// The event of a saga that is held, in the transaction that holds it.
void publish_alert(transaction& tx, const std::string& host, const instance& of);

}  // namespace settle::sagas
