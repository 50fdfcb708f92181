// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/launcher_words.hpp>

#include <algorithm>
#include <array>
#include <sstream>

namespace fourfold::batch {
namespace {

/// Of one line, all in this order; one alone would not be enough where there are two.
struct Words {
  std::string_view first;
  std::string_view second = {};
};

constexpr std::array unmendable_words{
    // srun --mpi=, and the plugins of the step
    Words{"Invalid MPI type"},
    Words{"Couldn't find the specified plugin"},
    Words{"Couldn't load specified plugin"},
    Words{"can not load PMIx library"},
    Words{"Plugin loading failed"},
    Words{"Plugin is corrupted"},
    // options
    Words{"unrecognized option"},
    Words{"invalid option"},
    Words{"unrecognized argument"},
    Words{"unrecognized --"},
    Words{"requires an argument"},
    Words{"Failed to parse"},
    Words{"Invalid numeric value"},
    Words{"Invalid --", "specification"},
    Words{"Invalid --", "argument"},
    Words{"invalid --", "option"},
    Words{"Invalid generic resource"},
    // what the job, or its user, may not have
    Words{"More processors requested than permitted"},
    Words{"Cannot request more threads per core"},
    Words{"Requested node configuration is not available"},
    Words{"Memory required by task is not available"},
    Words{"Invalid account"},
    Words{"nvalid partition"},
    Words{"Invalid qos"},
    // the program
    Words{"execve():", "No such file or directory"},
    Words{"execve():", "Permission denied"},
    Words{"execve():", "Exec format error"},
    Words{"execvp error on file", "No such file or directory"},
    Words{"execvp error on file", "Permission denied"},
    Words{"execvp error on file", "Exec format error"},
};

bool says(std::string_view line, const Words& words) {
  const std::size_t at = line.find(words.first);
  return at != std::string_view::npos &&
         line.find(words.second, at + words.first.size()) != std::string_view::npos;
}

/// "srun: ", "slurmstepd-node1: ", "[mpiexec@node1] ", "[proxy:0:0@node1] ": what programs that are
/// started print does not begin so.
bool is_of_launcher(std::string_view line) {
  return line.starts_with("srun:") || line.starts_with("slurmstepd") ||
         line.starts_with("[mpiexec@") || line.starts_with("[proxy:");
}

}  // namespace

std::optional<std::string> unmendable(std::string_view errors) {
  std::optional<std::string> found;
  std::istringstream lines{std::string(errors)};
  for (std::string line; std::getline(lines, line);) {
    if (is_of_launcher(line) && std::ranges::any_of(unmendable_words, [&](const Words& words) {
          return says(line, words);
        })) {
      found = line;  // the last one sums up
    }
  }
  return found;
}

}  // namespace fourfold::batch
