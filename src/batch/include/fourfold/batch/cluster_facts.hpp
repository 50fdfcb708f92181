// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What Slurm's commands say of a cluster, from their output: pure functions.
#pragma once

#include <fourfold/base/build_facts.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::batch {

/// A partition; the smallest of its nodes counts.
struct Partition {
  std::string name;
  bool is_default = false;
  int nodes = 0;
  int cpus = 0;                ///< of a node
  std::size_t node_bytes = 0;  ///< 0: Slurm does not know
  friend bool operator==(const Partition&, const Partition&) = default;
};

/// What `sinfo` has to print a line of for each partition and kind of node.
inline constexpr const char* partition_format = "%P|%D|%c|%m";

/// @param text  of `sinfo --noheader --format=<partition_format>`
/// @param name  of the partition; empty: the default one
/// @return nothing when there is none of that name
std::optional<Partition> partition_of(std::string_view text, std::string_view name);

/// Whether `srun --mpi=list` names it.
bool offers_mpi(std::string_view offered, std::string_view name);

/// The `srun --mpi=` by which ranks of this build meet.
/// @param libraries  what it was built with
/// @param offered    of `srun --mpi=list`
/// @return nothing when it is not known; empty when Slurm has none of those that would do
std::optional<std::string> mpi_of(std::span<const LibraryFact> libraries, std::string_view offered);

}  // namespace fourfold::batch
