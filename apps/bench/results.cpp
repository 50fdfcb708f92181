// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::bench {
namespace {

/// Four digits that count, never as a power of ten.
std::string brief(double value) {
  const int decimals = value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string or_dash(std::optional<double> value) {
  return value ? brief(*value) : "-";
}

std::string number_or_nothing(std::optional<double> value) {
  return value ? fmt::format("{:.6g}", *value) : "";
}

constexpr const char* our_columns = "{:<14} {:<9} {:>10} {:>10}  {:<4} {:>10} {:>8} {:>8} {:>6}";
constexpr const char* library_columns = "  {:>10} {:>8} {:>7}";

std::optional<double> micro(std::optional<double> seconds) {
  return seconds ? std::optional(*seconds * 1e6) : std::nullopt;
}

}  // namespace

std::optional<double> Row::library_bus_gb_s(int ranks) const {
  return library_call_s ? std::optional(exchange::algorithm_gb_s(extent, *library_call_s) *
                                        bus_factor(operation, ranks))
                        : std::nullopt;
}

std::optional<double> Row::ratio() const {
  return library_call_s ? std::optional(*library_call_s / call_s) : std::nullopt;
}

std::string table_head(const Setting& setting) {
  const bool beside = !setting.library.empty();
  std::string text =
      fmt::format("# transport {}, {} of {} ranks", setting.transport, setting.axis, setting.ranks);
  text += setting.lines > 1 ? fmt::format(", {} of them at the same time\n", setting.lines) : "\n";
  const std::string names = fmt::format(fmt::runtime(our_columns), "# operation", "algorithm",
                                        "size", "count", "type", "time", "algbw", "busbw", "wrong");
  const std::string units = fmt::format(fmt::runtime(our_columns), "#", "", "B", "elements", "",
                                        "us", "GB/s", "GB/s", "");
  if (!beside) {
    return text + names + "\n" + units + "\n";
  }
  return text + fmt::format("# beside it: {}\n", setting.library) + names +
         fmt::format(fmt::runtime(library_columns), "its time", "busbw", "ratio") + "\n" + units +
         fmt::format(fmt::runtime(library_columns), "us", "GB/s", "times") + "\n";
}

std::string table_line(const Setting& setting, const Row& row) {
  std::string text = fmt::format(
      fmt::runtime(our_columns), name(row.operation), comm::name(row.algorithm), row.extent.bytes,
      row.extent.count, fourfold::name(setting.dtype), brief(row.call_s * 1e6),
      brief(row.algorithm_gb_s()), brief(row.bus_gb_s(setting.ranks)), row.wrong);
  if (!setting.library.empty()) {
    text += fmt::format(fmt::runtime(library_columns), or_dash(micro(row.library_call_s)),
                        or_dash(row.library_bus_gb_s(setting.ranks)), or_dash(row.ratio()));
  }
  return text + "\n";
}

std::string table_foot(const Setting& setting, std::span<const Row> rows) {
  double sum = 0;
  std::int64_t wrong = 0;
  for (const Row& row : rows) {
    sum += row.bus_gb_s(setting.ranks);
    wrong += row.wrong;
  }
  return fmt::format("# wrong elements: {}{}\n# mean busbw: {} GB/s\n", wrong,
                     wrong == 0 ? "" : " (of known sums and places)",
                     brief(sum / static_cast<double>(std::max<std::size_t>(1, rows.size()))));
}

std::string to_csv(const Setting& setting, std::span<const Row> rows) {
  std::string text =
      "operation,algorithm,transport,axis,ranks,lines,bytes,count,dtype,time_us,algbw_gb_s,busbw_"
      "gb_s,wrong,library,library_time_us,library_busbw_gb_s,ratio\n";
  for (const Row& row : rows) {
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{},{},{},{},{}\n", name(row.operation),
        comm::name(row.algorithm), setting.transport, setting.axis, setting.ranks, setting.lines,
        row.extent.bytes, row.extent.count, fourfold::name(setting.dtype), row.call_s * 1e6,
        row.algorithm_gb_s(), row.bus_gb_s(setting.ranks), row.wrong, setting.library,
        number_or_nothing(micro(row.library_call_s)),
        number_or_nothing(row.library_bus_gb_s(setting.ranks)), number_or_nothing(row.ratio()));
  }
  return text;
}

}  // namespace fourfold::bench
