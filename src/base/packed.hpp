// Lists in few bytes, for columns that are written with every batch and read once, when it expires.
//
// Numbers are seven bits per byte, the lowest first, the eighth bit set where more follow; texts are their
// length and their bytes. What is written stays in databases for weeks: a format is never changed, only
// replaced by one in another column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace settle::inline v0 {

void pack_number(std::string& to, std::uint64_t number);
void pack_text(std::string& to, std::string_view text);

// Reads from the front. What is cut off or makes no sense reads as zero and empty, and is broken from then
// on.
class unpacker {
 public:
  explicit unpacker(std::string_view packed) : rest_(packed) {}

  std::uint64_t number();
  std::string_view text();
  std::string_view bytes(std::uint64_t count);
  bool at_end() const { return rest_.empty(); }
  bool is_broken() const { return broken_; }
  void fail();

 private:
  std::string_view rest_;
  bool broken_ = false;
};

// Deduplication keys. Ids as Settle makes them take 16 bytes each, less what all of them begin with, and come
// first; others are texts.
std::string pack_keys(std::span<const std::string_view> keys);

// One and the same id many times takes no bytes. A list that claims to have more of it than a batch has
// messages is damaged, and would be read for years.
inline constexpr std::uint64_t packed_same_keys_max = 100'000;

class packed_keys {
 public:
  explicit packed_keys(std::string_view packed);

  bool next();  // false: there are no more, or it is broken
  std::string_view key() const { return key_; }
  bool is_broken() const { return from_.is_broken(); }

 private:
  unpacker from_;
  std::uint64_t uuids_left_ = 0;
  unsigned char uuid_[16] = {};
  std::size_t shared_ = 0;  // bytes that all uuids begin with
  char text_[36] = {};
  std::string_view key_;
};

// Where messages came from: logs, each with its highest position, the sources in it, and the highest place of
// each lane of those.
struct log_places {
  struct of_source {
    std::string_view source;
    std::vector<std::pair<int, std::string_view>> highest = {};  // by lane
  };
  std::string_view log;
  std::string_view position;  // its bytes; empty: none
  std::vector<of_source> sources = {};
};
std::string pack_places(std::span<const log_places> logs);

class packed_places {
 public:
  explicit packed_places(std::string_view packed) : from_(packed) {}

  bool next();  // one lane after the other; false: there are no more, or it is broken
  std::string_view log() const { return log_; }
  std::string_view position() const { return position_; }  // its bytes
  std::string_view source() const { return source_; }
  int lane() const { return lane_; }
  const std::string& place() const { return place_; }
  bool is_broken() const { return from_.is_broken(); }

 private:
  void read_position();

  unpacker from_;
  std::string_view log_, source_, shared_;
  std::string_view position_;
  char position_number_[8] = {};
  std::uint64_t sources_left_ = 0, lanes_left_ = 0;
  int lane_ = 0;
  std::string place_;
};

}  // namespace settle::inline v0
