// The embedded broker: a log per topic and partition in one SQLite file, shared by any number of
// processes.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/batcher.hpp"
#include "settle/driver/broker.hpp"
#include "settle/sqlite.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/room.hpp"

namespace settle::inline v0::sqlite {

struct topic_info {
  std::int64_t id = 0;
  int partitions = 0;
};

class embedded_broker final : public broker, public publisher {
 public:
  embedded_broker(const std::string& path, const broker_options& opts);

  publisher& publishing() override { return *this; }
  std::unique_ptr<subscription> subscribe(const subscribe_options& options) override;
  broker_traits traits() const override { return {}; }
  // At most for busy_timeout, whatever the limits.
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits) override;
  std::unique_ptr<backlog> backlog_of(const std::string& group, const std::vector<std::string>& topics,
                                      const call_limits& limits) override;
  broker_inspection* inspection() override { return &inspection_; }

  // In a write transaction. Topics are never removed, so what was found once stays true; but one made
  // here counts only if the transaction commits, hence no cache on this path.
  topic_info ensure_topic(transaction& tx, const std::string& name) const;

  // In a write transaction: removes at most so many of the oldest messages of a partition, if they are old
  // enough and every group has acknowledged them. False: there were none.
  bool expire(transaction& tx, std::int64_t topic, int partition, std::int64_t rows_max) const;

  database& file() { return *file_; }
  const std::string& id() const { return id_; }
  const broker_options& settings() const { return options_; }

 private:
  using calls = std::span<const std::span<const message>>;
  std::vector<std::vector<publish_result>> store(calls waiting);
  broker_room room_for(transaction& tx);
  bool make_room(transaction& tx);

  broker_options options_;
  std::unique_ptr<database> file_;
  embedded_inspection inspection_{*file_};
  std::string id_;
  broker_room room_;  // these three are used by one store() at a time
  bool made_room_ = false;
  int stores_ = 0;
  batcher<std::span<const message>, std::vector<publish_result>> batcher_;
};

}  // namespace settle::inline v0::sqlite
