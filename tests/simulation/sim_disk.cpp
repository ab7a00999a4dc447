#include "simulation/sim_disk.hpp"

#include <algorithm>
#include <set>

namespace settle::sim {
namespace {

void put(std::string& image, std::int64_t offset, std::string_view bytes) {
  const auto end = static_cast<std::size_t>(offset) + bytes.size();
  if (image.size() < end) image.resize(end, '\0');
  bytes.copy(image.data() + offset, bytes.size());
}

void apply(std::string& image, const unsynced_change& change) {
  if (change.truncation)
    image.resize(static_cast<std::size_t>(change.offset), '\0');
  else
    put(image, change.offset, change.bytes);
}

}  // namespace

void inode::write(std::int64_t offset, std::string_view bytes) {
  unsynced.push_back({offset, std::string(bytes), false});
  put(current, offset, bytes);
}

void inode::truncate(std::int64_t length) {
  unsynced.push_back({length, {}, true});
  current.resize(static_cast<std::size_t>(length), '\0');
}

void inode::sync() {
  for (const auto& change : unsynced) apply(durable, change);
  unsynced.clear();
}

inode_ptr disk::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

inode_ptr disk::create(const std::string& name) { return names_[name] = std::make_shared<inode>(); }

void disk::remove(const std::string& name) { names_.erase(name); }

// Sectors arrive independently of each other, in any order; the rest of the file is untouched.
void disk::tear(std::string& image, const unsynced_change& change) {
  const auto end = change.offset + static_cast<std::int64_t>(change.bytes.size());
  for (auto at = change.offset; at < end;) {
    const auto next = std::min(end, (at / sector_bytes + 1) * sector_bytes);
    if (random_.below(2) == 0)
      put(image, at,
          std::string_view(change.bytes)
              .substr(static_cast<std::size_t>(at - change.offset), static_cast<std::size_t>(next - at)));
    at = next;
  }
}

void disk::settle_file(inode& file) {
  // Some power losses take everything or nothing: whole sequences of writes are then seen too.
  const auto mood = random_.below(4);
  for (const auto& change : file.unsynced) {
    const auto fate = mood == 0 ? 0 : mood == 1 ? 1 : random_.below(3);
    if (fate == 0)
      apply(file.durable, change);
    else if (fate == 2 && !change.truncation)
      tear(file.durable, change);
  }
  file.unsynced.clear();
  file.current = file.durable;
  file.memory.reset();
  file.open.clear();
}

void disk::lose_power() {
  std::set<std::string> touched;
  for (const auto& [name, unused] : names_) touched.insert(name);
  for (const auto& [name, unused] : durable_names_) touched.insert(name);
  for (const auto& name : touched) {
    const auto now = find(name);
    const auto before = durable_names_.find(name);
    const auto then = before == durable_names_.end() ? nullptr : before->second;
    auto kept = now;
    if (now != then && random_.below(2) == 0) kept = then;
    if (kept)
      names_[name] = kept;
    else
      names_.erase(name);
  }
  for (const auto& [name, file] : names_) settle_file(*file);
  durable_names_ = names_;
}

}  // namespace settle::sim
