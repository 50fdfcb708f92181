// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fourfold {

/// A library this build stands on, and its version as found at configure time.
struct LibraryFact {
  std::string_view name;
  std::string_view version;
};

/// How this build came about: for `fourfold version`, a run's log and what a checkpoint says of its
/// writer.
struct BuildFacts {
  std::string_view version;  ///< of fourfold, as in 0.1.0
  /// abbreviated, "-dirty" after it if files differed; "unknown" outside of git
  std::string_view commit;
  std::string_view compiler;    ///< name and version
  std::string_view build_type;  ///< of CMake
  std::string_view sanitizers;  ///< as in -fsanitize=...; empty without
  bool contracts;               ///< pre- and postconditions are checked
  bool native;                  ///< compiled for the CPU of the machine that built it
  std::span<const LibraryFact> libraries;
};

/// Static storage. Link fourfold::build_facts to have it: a library of its own, so that a new
/// commit relinks only the programs.
const BuildFacts& build_facts() noexcept;

/// What ranks of one run have to have in common: "0.1.0 (1a2b3c4)", with the sanitizers and the
/// contracts of a build that has them.
std::string build_name();

}  // namespace fourfold
