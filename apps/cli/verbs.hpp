// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::cli {

/// A verb and what its program does, in one line.
struct Verb {
  std::string_view name;
  std::string_view summary;
};

/// The verbs of this build whose programs are there, in the order in which a run meets them.
std::vector<Verb> installed_verbs();

/// The program of a verb, fourfold-<verb>: beside the running program (a build tree) or in libexec
/// (an installation). Nothing if there is none, or if the name holds anything but lower-case
/// letters, digits and hyphens, so that a verb never becomes a path.
std::optional<std::filesystem::path> program_of(std::string_view verb);

/// The manual page of `fourfold` itself.
std::string help(std::span<const Verb> verbs);

}  // namespace fourfold::cli
