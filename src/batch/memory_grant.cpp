// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/memory_grant.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <regex>
#include <system_error>

namespace fourfold::batch {
namespace {

constexpr std::size_t mib = 1 << 20;

/// An amount in MiB as Slurm writes it: "200", "200M", "1G", "0.50G" is none.
std::optional<std::uint64_t> amount_mib(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number > std::numeric_limits<std::uint32_t>::max()) {
    return std::nullopt;
  }
  const std::string letter(unit, end);
  constexpr std::uint64_t step = 1024;
  if (letter.empty() || letter == "M" || letter == "m" || letter == "MB") {
    return number;
  }
  if (letter == "K" || letter == "k" || letter == "KB") {
    return (number + step - 1) / step;
  }
  if (letter == "G" || letter == "g" || letter == "GB") {
    return number * step;
  }
  return letter == "T" || letter == "t" || letter == "TB" ? std::optional(number * step * step)
                                                          : std::nullopt;
}

/// The value of "--mem=1G" where the option is of that name.
std::optional<std::string> value_of(const std::string& option, std::string_view name) {
  const std::size_t at = option.find('=');
  return at != std::string::npos && option.substr(0, at) == name
             ? std::optional(option.substr(at + 1))
             : std::nullopt;
}

MemoryGrant grant_of(std::uint64_t amount, bool of_cpu, std::string set_by, int cpus) {
  const std::uint64_t on_node = amount * (of_cpu ? static_cast<std::uint64_t>(cpus) : 1);
  if (of_cpu && cpus > 1) {
    set_by += format_message(", {} CPUs", cpus);
  }
  return {.bytes = static_cast<std::size_t>(on_node) * mib, .set_by = std::move(set_by)};
}

/// By an option of the job; nothing where none says.
std::optional<MemoryGrant> asked_for(const MemoryQuestion& question) {
  std::optional<MemoryGrant> grant;
  for (const std::string& option : question.options) {
    for (const bool of_cpu : {false, true}) {
      const auto value = value_of(option, of_cpu ? "--mem-per-cpu" : "--mem");
      if (!value) {
        continue;
      }
      const auto amount = amount_mib(*value);
      if (!amount) {
        throw UserError(
            ExitCode::usage,
            format_message("--sbatch={} is no amount of memory (a whole number, with K, "
                           "M, G or T after it); write it as --mem=64G",
                           option));
      }
      grant = *amount == 0 ? MemoryGrant{} : grant_of(*amount, of_cpu, option, question.cpus);
    }
  }
  return grant;
}

/// By "DefMemPerCPU=200" or "DefMemPerNode = 4000" in what a command prints. "UNLIMITED" is none.
std::optional<MemoryGrant> by_default(std::string_view text, const char* whose, int cpus) {
  static const std::regex form(R"((?:^|\s)(DefMemPer(?:CPU|Node))\s*=\s*(\d{1,9})(?:\s|$))");
  std::match_results<std::string_view::const_iterator> parts;
  if (!std::regex_search(text.begin(), text.end(), parts, form)) {
    return std::nullopt;
  }
  const auto amount = amount_mib(parts[2].str());
  const std::string name = parts[1].str();
  return amount && *amount > 0
             ? std::optional(
                   grant_of(*amount, name == "DefMemPerCPU",
                            format_message("{}={} of the {}", name, parts[2].str(), whose), cpus))
             : std::nullopt;
}

}  // namespace

MemoryGrant memory_of_job(const MemoryQuestion& question) {
  if (auto grant = asked_for(question)) {
    return *grant;
  }
  if (auto grant = by_default(question.partition, "partition", question.cpus)) {
    return *grant;
  }
  return by_default(question.config, "cluster", question.cpus).value_or(MemoryGrant{});
}

}  // namespace fourfold::batch
