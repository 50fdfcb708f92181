// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// main() of test programs that run on MPI ranks. Rank 0 reports as usual; the others keep their
// report and show it only when something failed there. All end with the worst result of any.
#include "mpi_world.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/program/run.hpp>

#include <catch2/catch_session.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

using namespace fourfold;

/// Where rank `rank` keeps its report until the end.
std::filesystem::path report_path(int rank) {
  return std::filesystem::temp_directory_path() /
         fmt::format("fourfold_test_{}_{}.txt", ::getpid(), rank);
}

void show_report(const std::filesystem::path& path, int rank) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  fmt::print(stderr, "[rank {}] {}\n", rank, text);
}

int run_session(comm::Communicator& world, int argc, char** argv) {
  Catch::Session session;
  if (const int rc = session.applyCommandLine(argc, argv); rc != 0) {
    return rc;
  }
  const std::filesystem::path path = report_path(world.rank());
  if (world.rank() != 0) {
    session.configData().defaultOutputFilename = path.string();
  }
  const int own = session.run();
  if (world.rank() != 0) {
    if (own != 0) {
      show_report(path, world.rank());
    }
    std::filesystem::remove(path);
  }
  return static_cast<int>(comm::all_reduce_scalar(world, std::int64_t{own}, comm::ReduceOp::max));
}

}  // namespace

int main(int argc, char** argv) {
  return program::run("test", [&] {
    comm::MpiRuntime mpi(&argc, &argv);
    harness::mpi_world() = &harness::tested_world(mpi);
    return static_cast<ExitCode>(run_session(mpi.world(), argc, argv));
  });
}
