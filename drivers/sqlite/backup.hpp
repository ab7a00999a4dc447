// Copies of the files of a running system, and what has to change in a copy before it is used.
#pragma once

#include <string>

namespace settle::inline v0::sqlite {

// Copies one file as of one moment, while others go on writing to it. The copy is synced. Fails if there
// already is a file at `to`.
//
// Of several files that belong together, copy the broker's first and the services' afterwards: then every
// message in the copied broker has its commit in a copied service. What a service had already marked as
// published, and the older broker copy lacks, is published again after prepare_restored_service().
void copy_online(const std::string& from, const std::string& to);

// In a copy that is about to be used: raises the generation and lets relays publish again every event that
// the outbox still holds. Consumers skip what they have applied. Returns the new generation.
std::int64_t prepare_restored_service(const std::string& path);

// In a copy that is about to be used: gives the broker a new id, so that the owners' epochs that consumers
// remember from the lost file do not lock the new owners out.
void prepare_restored_broker(const std::string& path);

// Gives a prepared copy its final name. Only then does it look like a file to be used, so a restore that is
// killed before leaves nothing behind that could be taken for one. Nobody may have the copy open.
void put_in_place(const std::string& copy, const std::string& to);

}  // namespace settle::inline v0::sqlite
