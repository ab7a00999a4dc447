// What `settle doctor` says.
#pragma once

#include <string>

#include "doctor/doctor.hpp"

namespace settle::cli {

struct diagnosis {
  std::string database;  // as its errors name it
  doctor::findings findings;
};

std::string diagnosis_text(const diagnosis& of);
std::string diagnosis_json(const diagnosis& of);

}  // namespace settle::cli
