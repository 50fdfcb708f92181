// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

namespace fourfold::doctor {
namespace {

using Ask =
    std::function<std::optional<program::CommandOutput>(const std::vector<std::string>& command)>;
using Row = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// "[N/A]", "[Not Supported]": -1.
std::int64_t number_in(const std::string& text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0 ? value : -1;
}

/// nvidia-smi's tables: a GPU in each line, commas between.
std::vector<Row> rows_of(const std::string& text, std::size_t columns) {
  std::vector<Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Row row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) {
      row.push_back(trimmed(field));
    }
    if (row.size() == columns) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

/// A table of nvidia-smi; none of an older or a newer driver that does not have these columns.
std::vector<Row> table(const Ask& ask, const std::string& query, const Row& columns) {
  const auto output =
      ask({"nvidia-smi", fmt::format("--query-{}={}", query, fmt::join(columns, ",")),
           "--format=csv,noheader,nounits"});
  return output && output->is_answer() ? rows_of(output->text, columns.size()) : std::vector<Row>();
}

/// Empty where the table has no such GPU: all drivers know its UUID, and it stands first.
std::string cell_of(const std::vector<Row>& rows, const GpuFacts& gpu, std::size_t column) {
  const auto row =
      std::ranges::find(rows, gpu.uuid, [](const Row& cells) { return cells.front(); });
  return row == rows.end() ? "" : (*row)[column];
}

void add_memory_errors(const Ask& ask, std::vector<GpuFacts>& gpus) {
  const auto errors = table(ask, "gpu", {"uuid", "ecc.errors.uncorrected.volatile.total"});
  const auto pages = table(ask, "gpu", {"uuid", "retired_pages.pending"});  // until Volta
  const auto rows =
      table(ask, "remapped-rows", {"gpu_uuid", "remapped_rows.pending", "remapped_rows.failure"});
  const auto says_yes = [](const std::string& text) {
    return text == "Yes" || number_in(text) > 0;
  };
  for (GpuFacts& gpu : gpus) {
    gpu.uncorrected_errors = number_in(cell_of(errors, gpu, 1));
    gpu.needs_reset = says_yes(cell_of(pages, gpu, 1)) || says_yes(cell_of(rows, gpu, 1));
    gpu.has_no_spare = says_yes(cell_of(rows, gpu, 2));
  }
}

/// Not those by which a GPU rests or keeps to the power it is given.
void add_slowdowns(const Ask& ask, std::vector<GpuFacts>& gpus) {
  const Row reasons{"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown",
                    "sw_thermal_slowdown"};
  for (const char* const group : {"clocks_throttle_reasons", "clocks_event_reasons"}) {
    Row columns{"uuid"};
    for (const std::string& reason : reasons) {
      columns.push_back(fmt::format("{}.{}", group, reason));
    }
    const auto found = table(ask, "gpu", columns);
    for (GpuFacts& gpu : gpus) {
      for (std::size_t i = 0; i < reasons.size(); ++i) {
        if (cell_of(found, gpu, i + 1) == "Active") {
          gpu.slowed_by.push_back(reasons[i]);
        }
      }
    }
    if (!found.empty()) {
      return;  // the other name is that of newer drivers, for the same
    }
  }
}

/// The matrix of `nvidia-smi topo -p2p r`: "GPU0 X OK" in a line of GPU0. Both directions once.
std::vector<std::string> pairs_apart(const std::string& text) {
  std::vector<std::string> apart;
  std::istringstream lines(text);
  std::size_t from = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string word;
    words >> name >> word;
    if (!name.starts_with("GPU") || word.starts_with("GPU")) {
      continue;  // the head of the table, or after it
    }
    std::size_t to = 0;
    do {
      if (to > from && word != "OK" && word != "X") {
        apart.push_back(fmt::format("{}-{} {}", from, to, word));
      }
      ++to;
    } while (words >> word);
    ++from;
  }
  return apart;
}

}  // namespace

void query_gpus(const Ask& ask, NodeFacts& own) {
  const Row columns{"uuid",        "index",       "name", "driver_version", "temperature.gpu",
                    "memory.used", "memory.total"};
  const auto output = ask({"nvidia-smi", fmt::format("--query-gpu={}", fmt::join(columns, ",")),
                           "--format=csv,noheader,nounits"});
  if (!output ||
      (output->text + output->errors).find("No devices were found") != std::string::npos) {
    return;
  }
  for (const Row& row : rows_of(output->text, columns.size())) {
    if (row[0].starts_with("GPU-")) {
      own.gpus.push_back({.index = number_in(row[1]),
                          .uuid = row[0],
                          .name = row[2],
                          .driver = row[3],
                          .temperature_c = number_in(row[4]),
                          .used_mib = number_in(row[5]),
                          .total_mib = number_in(row[6])});
    }
  }
  if (!output->is_answer()) {  // it may list some, and say that it has lost another
    own.gpu_problem = output->failure();
  }
  if (own.gpus.empty()) {
    return;
  }
  add_memory_errors(ask, own.gpus);
  add_slowdowns(ask, own.gpus);
  if (own.gpus.size() > 1) {
    const auto matrix = ask({"nvidia-smi", "topo", "-p2p", "r"});
    own.apart = matrix && matrix->is_answer() ? pairs_apart(matrix->text) : own.apart;
  }
}

}  // namespace fourfold::doctor
