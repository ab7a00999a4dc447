// A buyer in a hurry on a bad network: clicks twice, loses answers, tries again, changes his mind, and looks
// into the orders of others.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "config.hpp"
#include "http_client.hpp"
#include "settle/request_key.hpp"

namespace shop {

struct buyer_settings {
  const config& of;
  std::uint64_t seed = 1;
  double chaos = 0;  // from 0 to 1
  int products = 1;
};

// What a buyer was told.
struct buyer_report {
  std::int64_t actions = 0;             // orders that he wanted
  std::int64_t attempts = 0;            // requests for them
  std::int64_t hung_up = 0;             // requests whose answer he has not waited for
  std::int64_t double_clicks = 0;       // two at the same time
  std::map<std::string, int> refusals;  // by code
  std::vector<std::string> order_ids;   // that he was told
  std::int64_t unknown = 0;             // no answer in all the time: it may have been placed
  std::int64_t cancelled = 0;
  std::vector<std::string> complaints;  // what must never happen

  void add(const buyer_report& other);
};

class buyer {
 public:
  buyer(const buyer_settings& with, int number);

  void buy(int action, std::stop_token stop);
  const buyer_report& report() const { return report_; }
  // The services have been asked for so many orders: for the live progress.
  static std::string name_of(int number) { return "buyer-" + std::to_string(number); }

 private:
  struct purchase {
    std::string session;
    settle::request_key key;
    std::string body;
  };
  bool chance(double part);
  bool fill_cart(const std::stop_token& stop);
  std::string begin_checkout(const std::stop_token& stop);
  void order(const purchase& what, std::stop_token stop);
  void order_by_event(const purchase& what, std::stop_token stop);
  void be_told(const settle::request_answer& answer, bool decided);
  void look_at_others(const std::string& order_id, const std::stop_token& stop);
  void cancel(const std::string& order_id, const std::stop_token& stop);
  settle::request_answer until_answered(http_client& to, const http_call& what, const std::stop_token& stop);
  http_call call(const std::string& method, const std::string& target, const std::string& body = "") const;

  const buyer_settings& with_;
  int number_;
  std::string user_;
  http_client orders_, checkout_, impatient_;
  std::mt19937_64 random_;
  std::vector<std::string> in_cart_;
  buyer_report report_;
};

}  // namespace shop
