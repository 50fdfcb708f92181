// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/communicator.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace fourfold::comm {
namespace {

/// Nearest first: mpiexec inside a Slurm step decides over the step. SLURM_NTASKS is left out: a
/// batch script has it too, where one process is right. Of each the variables of size and rank.
constexpr std::array<std::array<const char*, 2>, 5> launchers{{
    {"PMI_SIZE", "PMI_RANK"},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    {"PALS_SIZE", "PALS_RANKID"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
}};

/// What Slurm's --mpi must be for this MPI.
const char* slurm_plugin(const std::string& mpi_library) {
  return mpi_library.find("Open MPI") != std::string::npos ? "pmix" : "pmi2";
}

}  // namespace

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

Launch launch_of_this_process() {
  for (const auto& [size_variable, rank_variable] : launchers) {
    // What is no number of ranks no launcher has set.
    const auto size = number_in(environment_text(size_variable));
    if (size && *size >= 1) {
      const int rank = number_in(environment_text(rank_variable)).value_or(0);
      return {0 <= rank && rank < *size ? rank : 0, *size, size_variable};
    }
  }
  return {};
}

std::optional<std::string> singleton_problem(const Launch& launch, int mpi_size,
                                             const std::string& mpi_library) {
  if (mpi_size != 1 || launch.size <= 1) {
    return std::nullopt;
  }
  const std::string family = mpi_library.substr(0, mpi_library.find_first_of("\n,"));
  std::string advice;
  if (launch.variable == "SLURM_STEP_NUM_TASKS") {
    advice = fmt::format(
        "start with `srun --mpi={0} ...` or set SLURM_MPI_TYPE={0} (`srun --mpi=list` shows what "
        "this Slurm offers)",
        slurm_plugin(mpi_library));
  } else {
    advice = fmt::format(
        "start with the mpiexec that belongs to that MPI, or with `srun --mpi={}` under Slurm",
        slurm_plugin(mpi_library));
  }
  return fmt::format(
      "{} processes were started, but each is rank 0 of 1 (the launcher set {}={}, and the MPI in "
      "use, {}, does not understand that launcher); {}",
      launch.size, launch.variable, launch.size, family, advice);
}

void require_single_process(const std::string& program) {
  const Launch launch = launch_of_this_process();
  if (launch.size > 1) {
    throw UserError(
        ExitCode::config,
        format_message("{} processes were started (the launcher set {}={}), and each would do all "
                       "of the work; start {} alone, without the launcher, or as one task of it",
                       launch.size, launch.variable, launch.size, program));
  }
}

}  // namespace fourfold::comm
