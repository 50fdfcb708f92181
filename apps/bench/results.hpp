// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/algorithm.hpp>
#include <fourfold/exchange/operation.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace fourfold::bench {

/// What was measured, the same for every row.
struct Setting {
  std::string transport;  ///< "mpi" or "threads"
  std::string axis;       ///< "world", "dp", ...
  int ranks = 1;          ///< of a line
  int lines = 1;          ///< as many measure at the same time
  DType dtype = DType::f32;
  std::string library;  ///< "MPICH 4.0.2" if it is measured too; else empty
};

struct Row {
  exchange::Operation operation = exchange::Operation::all_reduce;
  comm::Algorithm algorithm = comm::Algorithm::direct;  ///< never automatic
  exchange::Extent extent;
  double call_s = 0;
  std::int64_t wrong = 0;  ///< elements, of all ranks
  std::optional<double> library_call_s = {};

  double algorithm_gb_s() const { return exchange::algorithm_gb_s(extent, call_s); }
  double bus_gb_s(int ranks) const { return algorithm_gb_s() * bus_factor(operation, ranks); }
  std::optional<double> library_bus_gb_s(int ranks) const;
  /// The library's time over ours.
  std::optional<double> ratio() const;
};

/// The table: first what stands above it, then a line per row, then what is below.
std::string table_head(const Setting& setting);
std::string table_line(const Setting& setting, const Row& row);
std::string table_foot(const Setting& setting, std::span<const Row> rows);

/// All of it for programs, with a line of names.
std::string to_csv(const Setting& setting, std::span<const Row> rows);

/// Bus bandwidth over size (logarithmic) as a picture that stands alone, light or dark as the
/// reader's screen: a line per operation, the MPI library's own dashed in the same colour, every
/// row as a tool tip.
std::string plot_svg(const Setting& setting, std::span<const Row> rows);

}  // namespace fourfold::bench
