// The parts of the daemon that can be asked alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/nearest_name.hpp"
#include "compose/redis.hpp"
#include "config/option.hpp"
#include "daemon/api/metric_table.hpp"
#include "daemon/api/metrics_text.hpp"
#include "daemon/data_folder.hpp"
#include "settle/metrics.hpp"
#include "support/daemon_process.hpp"

namespace settle::daemon {
namespace {

namespace fs = std::filesystem;
using test::content_of;
using namespace config;

TEST(daemon_options, read_back_what_they_show) {
  for (const auto& one : all_options()) {
    configuration to;
    EXPECT_EQ(assign(to, one, shown(configuration{}, one)), std::nullopt) << one.name;
    EXPECT_EQ(shown(to, one), shown(configuration{}, one)) << one.name;
    EXPECT_FALSE(one.meaning.empty()) << one.name;
  }
  configuration to;
  const auto& size = *find_option("relay.batch_bytes_max");
  EXPECT_EQ(assign(to, size, "3KiB"), std::nullopt);
  EXPECT_EQ(to.service.relay.batch_bytes_max, 3072U);
  for (const auto* wrong : {"", "-1", "1.5MiB", "1 MiB", "1mb", "9223372036854775807GiB", "0x10"})
    EXPECT_NE(assign(to, size, wrong), std::nullopt) << wrong;
}

TEST(daemon_options, set_the_options_of_whoever_uses_them) {
  configuration to;
  const auto set = [&to](std::string_view name, std::string_view text) {
    EXPECT_EQ(assign(to, *find_option(name), text), std::nullopt) << name;
  };
  set("relay.attempts_max", "7");
  set("relay.hold_failed_keys", "true");
  set("broker.partitions", "3");
  set("broker.keep", "2h");
  set("sweep.interval", "3s");
  set("http.workers", "5");
  EXPECT_EQ(to.service.relay.attempts_max, 7);
  EXPECT_EQ(to.service.relay.on_exhausted, exhausted::hold_key);
  EXPECT_EQ(to.broker.options.partitions, 3);
  EXPECT_EQ(to.broker.options.keep, std::chrono::hours(2));
  EXPECT_EQ(to.service.sweep.interval, std::chrono::seconds(3));
  EXPECT_EQ(to.http.worker_threads, 5U);
}

// What a row names has to be a field of its own: two rows for one would undo each other.
TEST(daemon_options, have_a_field_each) {
  for (const auto& one : all_options()) {
    if (one.type == kind::redis && !compose::missing_redis().empty()) continue;  // it can be set to nothing
    configuration to;
    for (const auto* other : {"false", "true", "error", "2", "3", "300", "7MiB", "20s", "7200s", "x",
                              "discard", "hold", "continue", "PLAIN", "127.0.0.1:1", "redis://x"})
      if (!assign(to, one, other) && shown(to, one) != shown(configuration{}, one)) break;
    for (const auto& every : all_options())
      EXPECT_EQ(shown(to, every) != shown(configuration{}, every), &every == &one)
          << one.name << ", " << every.name;
  }
}

TEST(daemon_options, never_show_a_secret) {
  auto secret = *find_option("relay.source");
  secret.secret = true;
  configuration with;
  with.service.relay.source = "hunter2";
  EXPECT_EQ(shown(with, secret), "(hidden)");
  const auto refused = assign(with, secret, std::string(300, 'x'));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->find("xxx"), std::string::npos);
}

TEST(daemon_parts, know_network_filesystems) {
  EXPECT_EQ(network_filesystem(0x6969, ""), "NFS");
  EXPECT_EQ(network_filesystem(static_cast<int>(0xff534d42), ""), "CIFS") << "f_type may be signed";
  EXPECT_EQ(network_filesystem(0x01021997, ""), "9p");
  EXPECT_EQ(network_filesystem(0x65735546, "fuse.sshfs"), "sshfs");
  EXPECT_EQ(network_filesystem(0x65735546, "fuse.ntfs-3g"), "");
  EXPECT_EQ(network_filesystem(0xef53, ""), "") << "ext4";
}

TEST(daemon_parts, measure_slips_of_the_keyboard) {
  EXPECT_EQ(edit_distance("listen", "listen"), 0U);
  EXPECT_EQ(edit_distance("lisetn", "listen"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(daemon_parts, escape_labels_and_keep_families_together) {
  const metric_source some{.counters = {{"a_total{x=\"1\"}", 1}, {"a_total_more", 2}, {"a_total", 3}}};
  const auto page = metrics_text({&some, 1});
  EXPECT_NE(page.find("# TYPE a_total untyped\na_total 3\na_total{x=\"1\"} 1\n#"), std::string::npos) << page;
  EXPECT_EQ(series_of("m", {{"l", "a\"b\\c\nd"}}), "m{l=\"a\\\"b\\\\c\\nd\"}");
}

TEST(daemon_parts, write_the_buckets_of_a_histogram_in_order_and_each_with_all_below_it) {
  time_counts some;
  for (const auto us : {70, 7'000, 70'000'000}) some.add(duration(us));
  const metric_source from{.times = {{"settle_consumer_handler_seconds{consumer=\"a\"}", some}}};
  const auto page = metrics_text({&from, 1});
  EXPECT_NE(page.find("# TYPE settle_consumer_handler_seconds histogram\n"
                      "settle_consumer_handler_seconds_bucket{consumer=\"a\",le=\"0.0001\"} 1\n"
                      "settle_consumer_handler_seconds_bucket{consumer=\"a\",le=\"0.00025\"} 1\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("settle_consumer_handler_seconds_bucket{consumer=\"a\",le=\"60\"} 2\n"
                      "settle_consumer_handler_seconds_bucket{consumer=\"a\",le=\"+Inf\"} 3\n"
                      "settle_consumer_handler_seconds_sum{consumer=\"a\"} 70.00707\n"
                      "settle_consumer_handler_seconds_count{consumer=\"a\"} 3\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("settle_relay_publish_delay_seconds_count 0\n"), std::string::npos)
      << "shown from 0 on";
}

// Proves D7
TEST(daemon_metrics, are_all_in_the_table) {
  EXPECT_TRUE(std::ranges::is_sorted(all_metrics(), {}, &metric::name));
  const std::regex counted("->add(?:_times)?\\(\\s*\"(settle_[a-z_]+)\"");
  for (const auto* folder : {"src", "drivers", "daemon"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SETTLE_SOURCE) / folder)) {
      if (entry.path().extension() != ".cpp" || entry.path().string().ends_with("_test.cpp")) continue;
      const auto text = content_of(entry.path().string());
      for (std::sregex_iterator at(text.begin(), text.end(), counted), end; at != end; ++at) {
        const auto known = std::ranges::find(all_metrics(), std::string_view((*at)[1].str()), &metric::name);
        EXPECT_NE(known, all_metrics().end()) << (*at)[1] << " of " << entry.path();
      }
    }
}

}  // namespace
}  // namespace settle::daemon
