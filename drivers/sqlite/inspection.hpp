// The embedded broker seen from outside. Over any open database that is a broker's file, so that a command
// line can look into one without migrating it.
#pragma once

#include "settle/database.hpp"
#include "settle/driver/broker_inspection.hpp"

namespace settle::inline v0::sqlite {

class embedded_inspection final : public broker_inspection, public broker_log {
 public:
  explicit embedded_inspection(database& file) : file_(file) {}

  std::string name() const override { return file_.name(); }
  std::optional<std::int64_t> stored_bytes() override;
  std::vector<inspected_topic> topics(
      std::size_t topics_max = std::numeric_limits<std::size_t>::max()) override;
  std::vector<inspected_group> groups(const inspect_groups& wanted = {}) override;
  broker_log* log() override { return this; }

  std::vector<placed_message> read(const std::string& topic, const log_position& after,
                                   const read_limits& limits) override;
  log_position before_last(const std::string& topic, std::size_t messages) override;
  void scan(const std::function<void(std::string_view group, std::string_view topic)>& group,
            const std::function<void(const kept_message&)>& kept) override;
  std::unique_ptr<wakeup> arrivals() override { return file_.watch(); }

 private:
  database& file_;
};

// Whether an open SQLite file is a broker's.
bool is_broker_file(database& file);

}  // namespace settle::inline v0::sqlite
