// A check asks one question and adds what it finds. One that finds nothing is itself worth a line.
#pragma once

#include <span>

#include "doctor/doctor.hpp"

namespace settle::doctor {

struct check {
  const char* subject;  // what could not be checked, if it could not
  const char* fine;     // said if nothing was found
  void (*run)(transaction& tx, const limits& normal, findings& into);
};

void run_checks(database& db, std::span<const check> all, const limits& normal, findings& into);

std::span<const check> horizon_checks();
std::span<const check> setting_checks();
std::span<const check> schema_checks();
std::span<const check> ring_checks();
std::span<const check> outbox_checks();  // on both databases

// Whether Settle's tables are there in the version of this build; only then can they be asked.
bool examine_schema(database& db, findings& into);

}  // namespace settle::doctor
