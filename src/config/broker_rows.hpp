// The settings of a broker. Each row serves twice: inside [broker.NAME], without the first part of its name,
// and in the section [broker], where it is that of the data folder's own broker and the default of all
// others.
#pragma once

#include <array>

#include "config/kafka_rows.hpp"
#include "config/option.hpp"

namespace settle::config {

inline constexpr std::array<std::string_view, 2> unrouted_words{"hold", "discard"};

// Of a server, whichever it is.
template <class Settings, auto... At>
constexpr auto server_rows() {
  using row = option_of<Settings>;
  using options = compose::server_options;
  constexpr auto server = &compose::broker_options::server;
  return std::array{
      row{"broker.prefix",
          kind::text,
          field<At..., &broker_settings::options, server, &options::prefix>(),
          {0, 64},
          "",
          "Of a RabbitMQ or a Kafka: what stands before the name of everything that Settle makes there, for "
          "several environments in one virtual host or cluster."},
      row{"broker.ca_file",
          kind::text,
          field<At..., &broker_settings::options, server, &options::ca_file>(),
          {0, 4000},
          "",
          "For amqps:// and kafkas://: file with the authorities that are trusted, in PEM format. Empty: "
          "those of the system."},
      row{"broker.certificate_file",
          kind::text,
          field<At..., &broker_settings::options, server, &options::certificate_file>(),
          {0, 4000},
          "",
          "For amqps:// and kafkas://: our certificate, if the server asks for one."},
      row{"broker.key_file",
          kind::text,
          field<At..., &broker_settings::options, server, &options::key_file>(),
          {0, 4000},
          "",
          "For amqps:// and kafkas://: the key of our certificate."},
  };
}

// Of a RabbitMQ.
template <class Settings, auto... At>
constexpr auto rabbitmq_rows() {
  using row = option_of<Settings>;
  return std::array{
      row{"broker.queues",
          kind::count,
          field<At..., &broker_settings::options, &compose::broker_options::rabbitmq,
                &rabbitmq::options::queues>(),
          {1, 256},
          "queues",
          "Of a RabbitMQ: queues of a group and topic that is new, so members of the group that work on it "
          "at once. Fixed for that group from then on."},
      row{.name = "broker.unrouted",
          .type = kind::choice,
          .where = choice_field<unrouted_words, At..., &broker_settings::options,
                                &compose::broker_options::rabbitmq, &rabbitmq::options::without_groups>(),
          .meaning =
              "Of a RabbitMQ: what becomes of events of a topic that no group listens to. `hold` keeps "
              "them in the outbox until there is one; `discard` confirms and counts them.",
          .words = unrouted_words},
  };
}

template <class Settings, auto... At>
constexpr auto embedded_broker_rows() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using row = option_of<Settings>;
  return std::array{
      row{"broker.partitions",
          kind::count,
          field<At..., &broker_settings::options, &compose::broker_options::partitions>(),
          {1, 1024},
          "partitions",
          "Of an embedded broker or a Kafka: partitions of a topic that is used for the first time. Fixed "
          "for "
          "that topic from then on; it bounds how many members of a group work on it at once."},
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

template <class Settings, auto... At>
constexpr auto broker_rows() {
  return joined(embedded_broker_rows<Settings, At...>(), server_rows<Settings, At...>(),
                rabbitmq_rows<Settings, At...>(), kafka_rows<Settings, At...>());
}

}  // namespace settle::config
