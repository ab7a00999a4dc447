// Where messages stand among the first deliveries of their source and lane, so that a horizon can say which
// of them were forgotten. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lanes.hpp"
#include "base/packed.hpp"
#include "settle/driver/broker.hpp"

namespace settle::consume {

// A message that no relay of ours has numbered is known by its position in the broker's log, `partition`.
struct place {
  std::string_view source;
  int lane = 0;
  std::string order;  // text that sorts as first deliveries come; empty: nobody knows
};
place place_of(const delivery& of, std::string_view partition);

// The highest place of each lane.
class highest_places {
 public:
  highest_places() { found_at_.fill(-1); }

  void add(int lane, std::string_view order);
  std::vector<std::pair<int, std::string_view>> take() && { return std::move(found_); }

 private:
  std::vector<std::pair<int, std::string_view>> found_;
  std::array<std::int16_t, lane_count> found_at_;  // by lane; -1: nowhere
};

// What a batch's messages leave behind when they are forgotten together: per log the highest position, and
// per source within it the highest place of each lane. It views what was added, and what is taken views it.
class batch_places {
 public:
  batch_places() = default;
  batch_places(const batch_places&) = delete;
  batch_places& operator=(const batch_places&) = delete;

  void add(std::string_view log, const log_position& position, const place& at);
  std::vector<log_places> take();

 private:
  struct part {
    log_position position = {};
    std::map<std::string_view, highest_places> by_source = {};
  };
  using origin = std::pair<std::string_view, std::string_view>;  // a log and a source within it

  std::map<std::string_view, part> by_log_;
  origin last_;  // neighbours nearly always have it in common
  part* last_part_ = nullptr;
  highest_places* last_places_ = nullptr;
};

}  // namespace settle::consume
