#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "screen.hpp"
#include "services.hpp"

namespace storm {
namespace {

constexpr std::size_t examples_max = 10;

struct findings_of_shop {
  std::int64_t lost = 0, doubled = 0, reordered = 0;
};

// A finding names an order, and its number says whose it was.
int shop_of_finding(const services& all, const settle::verify_finding& what) {
  constexpr std::string_view before = "order-";
  if (!what.subject.starts_with(before)) return -1;
  return shop_of(all, std::stoi(what.subject.substr(before.size())));
}

void print_shops(const settings& of, const stage& seen, const settle::verify_report& report) {
  const auto all = read_services(of.config);
  std::map<int, findings_of_shop> found;
  for (const auto& one : report.findings) {
    auto& its = found[shop_of_finding(all, one)];
    its.lost += one.kind == "lost";
    its.doubled += one.kind == "doubled";
    its.reordered += one.kind == "reordered";
  }
  int index = 0;
  for (const auto& one : seen.shops()) {
    const auto& its = found[index++];
    fmt::print("  {:<12} {:>7} committed, {} lost, {} doubled, {} out of order\n", one.name,
               grouped(one.committed), its.lost, its.doubled, its.reordered);
  }
}

}  // namespace

int give_verdict(const settings& of, const stage& seen, const blows_dealt& dealt, double took) {
  const auto report = seen.verify();
  const auto copies = seen.extra_copies();
  fmt::print("\nAfter {:.1f} s: {} processes killed, {} stopped past their lease{}.\n", took, dealt.kills,
             dealt.pauses,
             of.config.empty() ? "" : fmt::format(", {} changed files read again", dealt.reloads));
  if (copies)
    fmt::print("The broker held {} extra copies of messages{}.\n", grouped(*copies),
               report.doubled == 0 ? "; every one was skipped" : "");
  for (std::size_t i = 0; i < std::min(report.findings.size(), examples_max); ++i) {
    const auto& finding = report.findings[i];
    fmt::print("  {} {} at {}: {}\n", finding.kind, finding.subject, finding.consumer, finding.detail);
  }
  if (!of.config.empty()) print_shops(of, seen, report);
  const bool complete =
      report.clean() && report.pending == 0 && report.committed == of.orders && report.applied == of.orders;
  if (report.clean())
    fmt::print("Every order was {}applied exactly once, and each customer's orders in their order.\n",
               report.pending == 0 ? "" : "either still on its way or ");
  if (report.pending > 0) fmt::print("{} orders are still on their way.\n", grouped(report.pending));
  if (report.ghosts + report.reordered > 0)
    fmt::print("{} applied without a commit, {} out of order.\n", grouped(report.ghosts),
               grouped(report.reordered));
  fmt::print("{} committed, {} applied, {} lost, {} doubled\n", grouped(report.committed),
             grouped(report.applied), grouped(report.lost), grouped(report.doubled));
  return complete ? 0 : 1;
}

}  // namespace storm
