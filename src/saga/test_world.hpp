// What a saga_world is made of.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "saga/instance.hpp"
#include "saga/tested_steps.hpp"
#include "settle/metrics.hpp"
#include "settle/saga_testing.hpp"
#include "settle/testing.hpp"

namespace settle::sagas {

// A folder that is removed with it.
class own_folder {
 public:
  own_folder();
  ~own_folder();
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The end of a process at a chosen effect, as far as its database and the outside can tell: from there on
// nothing is committed and nobody is called, until somebody restarts it.
class crash_points final : public fault_points {
 public:
  void reached(std::string_view point) override;
  void record() { recording_ = true; }
  void crash_at(std::size_t pass) { crash_at_ = pass; }
  bool has_crashed() const { return crashed_; }
  void restarted() { crashed_ = false; }
  const std::vector<std::string>& seen() const { return seen_; }

 private:
  bool recording_ = false;
  bool crashed_ = false;
  std::optional<std::size_t> crash_at_;
  std::size_t passed_ = 0;
  std::vector<std::string> seen_;
};

class silent_log final : public log_sink {
 public:
  bool enabled(log_level) const override { return false; }
  void write(log_level, std::string_view, std::initializer_list<log_field>) override {}
};

using definition_pointer = std::shared_ptr<const detail::saga_definition>;

// A row of `sagas`, with its journal.
struct seen_saga {
  std::int64_t no = 0;
  saga_id id;
  std::string type;
  int version = 0;
  std::string entity, status, last_error, input;
  std::optional<std::string> result;
  timestamp created_at{};
  journal rows = {};
};

}  // namespace settle::sagas

namespace settle::inline v0::testing {

struct saga_world::parts {
  explicit parts(saga_world_options with) : options(std::move(with)) {}

  saga_world_options options;
  std::vector<sagas::definition_pointer> definitions;
  std::vector<std::function<void(saga_host&)>> setups;
  std::shared_ptr<sagas::step_book> book = std::make_shared<sagas::step_book>();

  sagas::own_folder folder;
  manual_time time;
  sagas::silent_log log;
  metrics counters;
  sagas::crash_points points;
  std::size_t steps_max = 16;
  std::unique_ptr<database> db;
  std::optional<saga_host> host;
  int events = 0;
  std::map<std::int64_t, std::string> checked;  // by saga: what was replayed last

  void open(const parts* like);
  saga_host& running();
  void restart();
  void drain();
  void attempt(const std::function<void()>& what);
  std::optional<timestamp> next_due();
  std::vector<sagas::seen_saga> look();
  sagas::seen_saga find(saga_id of);
  const detail::saga_definition* definition_of(const sagas::seen_saga& of) const;
  void check_bodies();
};

}  // namespace settle::inline v0::testing
