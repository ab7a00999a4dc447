#include "cli/doctor_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <sstream>

#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;
using doctor::severity;

std::int64_t count(const doctor::findings& of, severity level) {
  return std::ranges::count(of, level, &doctor::finding::level);
}

constexpr std::size_t width_max = 100;

// A labelled paragraph with a hanging indent. Foreign text in it (names, statements) cannot break out.
std::string paragraph(std::string_view label, const std::string& text) {
  if (text.empty()) return {};
  std::string out = fmt::format("  {:<6}", label);
  std::size_t width = out.size();
  bool first = true;
  std::istringstream words(for_terminal(text));
  for (std::string word; words >> word; first = false) {
    if (!first && width + 1 + word.size() > width_max) {
      out += "\n        ";
      width = 8;
    } else if (!first) {
      out += ' ';
      ++width;
    }
    out += word;
    width += word.size();
  }
  return out + '\n';
}

// Statements are not wrapped, so that they can be copied.
std::string statements(const std::string& fix) {
  std::string out;
  std::istringstream lines(fix);
  for (std::string line; std::getline(lines, line);)
    out += fmt::format("  {:<6}{}\n", out.empty() ? "fix" : "", for_terminal(line));
  return out;
}

std::string finding_text(const doctor::finding& of) {
  if (of.level == severity::ok) return fmt::format("ok       {}\n", for_terminal(of.title));
  return fmt::format("{:<9}{}\n", of.level == severity::problem ? "PROBLEM" : "WARNING",
                     for_terminal(of.title)) +
         paragraph("seen", of.seen) + paragraph("why", of.why) + paragraph("do", of.advice) +
         statements(of.fix) + '\n';
}

}  // namespace

std::string diagnosis_text(const diagnosis& of) {
  auto out = fmt::format("Database  {}\n\n", for_terminal(of.database));
  for (const auto& one : of.findings) out += finding_text(one);
  return out + fmt::format("\n{}, {}, {} fine\n", counted(count(of.findings, severity::problem), "problem"),
                           counted(count(of.findings, severity::warning), "warning"),
                           counted(count(of.findings, severity::ok), "check"));
}

namespace {

json::object diagnosis_object(const diagnosis& of) {
  json::array findings;
  for (const auto& one : of.findings)
    findings.push_back({{"severity", to_string(one.level)},
                        {"code", one.code},
                        {"title", safe_json_text(one.title)},
                        {"seen", safe_json_text(one.seen)},
                        {"why", safe_json_text(one.why)},
                        {"advice", safe_json_text(one.advice)},
                        {"fix", safe_json_text(one.fix)}});
  return {{"database", safe_json_text(of.database)},
          {"healthy", doctor::healthy(of.findings)},
          {"problems", count(of.findings, severity::problem)},
          {"warnings", count(of.findings, severity::warning)},
          {"findings", findings}};
}

}  // namespace

std::string diagnosis_json(const diagnosis& of) { return json::serialize(diagnosis_object(of)) + "\n"; }

std::string diagnoses_text(const std::vector<named_diagnosis>& all) {
  std::string out;
  for (const auto& one : all)
    out += fmt::format("{}Service   {}\n", out.empty() ? "" : "\n", one.service) + diagnosis_text(one.of);
  return out;
}

std::string diagnoses_json(const std::vector<named_diagnosis>& all, const failures_by_name& failed) {
  json::object services;
  for (const auto& one : all) services[one.service] = diagnosis_object(one.of);
  for (const auto& one : failed.all())
    services[one.name] = {
        {"error", {{"code", to_string(one.code)}, {"message", safe_json_text(one.message)}}}};
  return json::serialize(json::object{{"services", services}}) + "\n";
}

}  // namespace settle::cli
