// What `settle doctor` says.
#pragma once

#include <string>
#include <vector>

#include "cli/each_service.hpp"
#include "doctor/doctor.hpp"

namespace settle::cli {

struct diagnosis {
  std::string database;  // as its errors name it
  doctor::findings findings;
};

std::string diagnosis_text(const diagnosis& of);
std::string diagnosis_json(const diagnosis& of);

// Of all services of the daemon's file, by name; those that could not be examined are told as errors.
struct named_diagnosis {
  std::string service;
  diagnosis of;
};
std::string diagnoses_text(const std::vector<named_diagnosis>& all);
std::string diagnoses_json(const std::vector<named_diagnosis>& all, const failures_by_name& failed);

}  // namespace settle::cli
