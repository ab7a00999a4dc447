// The way by which one connection publishes to the topics. Each topic gets an exchange that only this
// connection uses, bound to the topic's exchange, and everything goes through it.
//
// Why not straight to the topic's exchange: when somebody deletes that, the server takes its bindings away
// one after the other, and confirms what it routes to those that are left; when somebody else makes it
// again, it has its bindings one after the other. Our own binding goes with the exchange and comes back with
// nobody but us, so what we send never reaches an exchange that we have not seen whole. And whether it is
// still there after a batch tells whether all of the batch was routed to every group.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "rabbitmq/confirms.hpp"
#include "rabbitmq/connection.hpp"
#include "rabbitmq/topology.hpp"

namespace settle::inline v0::rabbitmq {

class entrance {
 public:
  // Connections that publish have numbers. Takes the first one from `slot` on that no other has, as soon as it
  // needs one, and says it there. It is given back with the connection.
  entrance(connection& on, topology& at, names of, int& slot)
      : on_(on), topology_(at), names_(std::move(of)), slot_(slot) {}

  // Makes what is missing of the topic and its groups' bindings, and lets this connection in.
  void open(const std::string& topic, const limit& within);
  bool is_open(const std::string& topic) const { return open_.contains(topic); }
  void close(const std::string& topic) { open_.erase(topic); }
  void close_all() { open_.clear(); }

  // Where to publish what belongs to an open topic.
  const std::string& exchange(const std::string& topic) const { return ways_.at(topic); }

  // To be sent behind what was published to the topic, on the same channel. It is confirmed if all of that
  // has reached every group, and else returned or refused with the channel's end.
  void send_check(channel& on, const std::string& topic, std::uint64_t number, const limit& within) const;

 private:
  void take_slot(const limit& within);

  connection& on_;
  topology& topology_;
  names names_;
  int& slot_;
  std::string queue_;                                     // holds the number, and gets the checks
  std::map<std::string, std::string, std::less<>> ways_;  // exchanges of ours, by topic
  std::set<std::string, std::less<>> open_;
};

}  // namespace settle::inline v0::rabbitmq
