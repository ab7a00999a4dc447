// The settings of a Kafka, beside those that it has in common with other brokers (broker_rows.hpp).
#pragma once

#include <array>
#include <string_view>

#include "config/option.hpp"

namespace settle::config {

inline constexpr std::array<std::string_view, 2> missing_topics_words{"create", "hold"};
inline constexpr std::array<std::string_view, 2> on_gap_words{"stop", "continue"};
inline constexpr std::array<std::string_view, 3> sasl_words{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"};

// How topics are made, and what is published to them.
template <class Settings, auto... At>
constexpr auto kafka_topic_rows() {
  using row = option_of<Settings>;
  using options = kafka::options;
  constexpr auto kafka = &compose::broker_options::kafka;
  return std::array{
      row{"broker.replication",
          kind::count,
          field<At..., &broker_settings::options, kafka, &options::replication>(),
          {0, 100},
          "copies",
          "Of a Kafka: copies of each partition of a topic that is made. 0 leaves it to the cluster."},
      row{.name = "broker.missing_topics",
          .type = kind::choice,
          .where = choice_field<missing_topics_words, At..., &broker_settings::options, kafka,
                                &options::missing_topics>(),
          .meaning =
              "Of a Kafka: what becomes of a topic that is used and does not exist. `create` makes it; "
              "`hold` keeps its events in the outbox until somebody else has made it.",
          .words = missing_topics_words},
      row{"broker.message_bytes_max", kind::bytes,
          field<At..., &broker_settings::options, kafka, &options::message_bytes_max>(),
          bounds{1000, 1'000'000'000}, "",
          "Of a Kafka: a larger message, attributes included, is rejected without asking the server, whose "
          "own limit may be lower."},
  };
}

// How members of groups read.
template <class Settings, auto... At>
constexpr auto kafka_member_rows() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using row = option_of<Settings>;
  using options = kafka::options;
  constexpr auto kafka = &compose::broker_options::kafka;
  return std::array{
      row{.name = "broker.on_gap",
          .type = kind::choice,
          .where = choice_field<on_gap_words, At..., &broker_settings::options, kafka, &options::on_gap>(),
          .meaning =
              "Of a Kafka: what a consumer does where messages of its group are missing, because retention "
              "has passed its place or the topic was made anew. `stop` holds the partition, with an error in "
              "the log; `continue` goes on with the oldest message that there is, and logs the same.",
          .words = on_gap_words},
      row{"broker.session_timeout", kind::time,
          field<At..., &broker_settings::options, kafka, &options::session_timeout>(),
          between(milliseconds(100), hours(1)), "",
          "Of a Kafka: a member of a group whose process has gone is replaced after so long. The server may "
          "allow less or more."},
      row{"broker.silence_max", kind::time,
          field<At..., &broker_settings::options, kafka, &options::silence_max>(),
          between(milliseconds(100), hours(24)), "",
          "Of a Kafka: a member that has fetched nothing for so long is replaced, although it lives."},
      row{"broker.instance_id",
          kind::text,
          field<At..., &broker_settings::options, kafka, &options::instance_id>(),
          {0, 249},
          "",
          "Of a Kafka: who we are in a group (static membership). A member that comes back within the "
          "session "
          "timeout finds its partitions waiting. No two members of a group may have the same one."},
      row{"broker.read_ahead_bytes", kind::bytes,
          field<At..., &broker_settings::options, kafka, &options::read_ahead_bytes>(),
          bounds{1000, 1'000'000'000}, "", "Of a Kafka: messages that a member reads ahead."},
  };
}

// Who we are.
template <class Settings, auto... At>
constexpr auto kafka_login_rows() {
  using row = option_of<Settings>;
  using options = kafka::options;
  constexpr auto kafka = &compose::broker_options::kafka;
  return std::array{
      row{"broker.through",
          kind::text,
          field<At..., &broker_settings::options, kafka, &options::through>(),
          {0, 255},
          "",
          "Of a Kafka of one server behind a tunnel: HOST:PORT where every connection goes, instead of to "
          "the "
          "address that the server gives of itself."},
      row{.name = "broker.sasl_mechanism",
          .type = kind::choice,
          .where = field<At..., &broker_settings::options, kafka, &options::sasl_mechanism>(),
          .meaning = "Of a Kafka whose URL has a user: how it logs in.",
          .words = sasl_words},
      row{.name = "broker.key_password",
          .type = kind::text,
          .where = field<At..., &broker_settings::options, kafka, &options::key_password>(),
          .allowed = {0, 4000},
          .meaning = "Of a Kafka: what the key in `key_file` is encrypted with.",
          .secret = true},
  };
}

template <class Settings, auto... At>
constexpr auto kafka_rows() {
  return joined(kafka_topic_rows<Settings, At...>(), kafka_member_rows<Settings, At...>(),
                kafka_login_rows<Settings, At...>());
}

}  // namespace settle::config
