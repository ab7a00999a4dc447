// The settings of a broker. Each row serves twice: inside [broker.NAME], without the first part of its name,
// and in the section [broker], where it is that of the data folder's own broker and the default of all
// others.
#pragma once

#include <array>

#include "config/option.hpp"

namespace settle::config {

template <class Settings, auto... At>
constexpr auto broker_rows() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using row = option_of<Settings>;
  return std::array{
      row{"broker.partitions",
          kind::count,
          field<At..., &broker_settings::options, &compose::broker_options::partitions>(),
          {1, 1024},
          "partitions",
          "Partitions of a topic that is used for the first time. Fixed for that topic from then on; it "
          "bounds how many members of a group work on it at once."},
      row{"broker.lease_ttl", kind::time,
          field<At..., &broker_settings::options, &compose::broker_options::lease_ttl>(),
          between(milliseconds(50), hours(1)), "",
          "How long a silent member of a group keeps its partitions."},
      row{"broker.keep", kind::time,
          field<At..., &broker_settings::options, &compose::broker_options::keep>(),
          between(milliseconds(0), hours(24 * 365)), "",
          "How long a message is kept at least. It goes when it is older and every group that ever "
          "subscribed "
          "to its topic has acknowledged it."},
      row{"broker.bytes_max",
          kind::bytes,
          field<At..., &broker_settings::options, &compose::broker_options::bytes_max>(),
          {mib, 1024 * 1024 * mib},
          "",
          "When the messages take more, publishing is refused: relays pause, nothing is lost, and they "
          "resume "
          "when there is room again. From nine tenths on that holds for topics of which a group without "
          "members has messages to read, so that others go on; `/readyz` and the log name the group."},
  };
}

}  // namespace settle::config
