// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// Starts that come to a directory at the same moment.
#include "captured_log.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/line_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

using namespace fourfold;
using namespace std::chrono_literals;
using harness::ScratchFolder;
using io::DirectoryLease;
using io::LeaseHolder;
namespace fs = std::filesystem;

namespace {

/// Takes the lease of a directory again and again, as starts do that come at once, and writes there
/// while it has it. @return how often that failed
int failures_of_one_of_many(const fs::path& directory, int times) {
  const io::LeaseOptions hasty{.beat = 1ms, .silence = 10s};
  int failures = 0;
  for (int i = 0; i < times;) {
    try {
      DirectoryLease lease(directory, LeaseHolder::this_process(), hasty);
      lease.confirm();
      ++i;
      try {
        io::LineFile(directory / "lines", "").append("here");
        lease.check();
      } catch (const UserError&) {
        ++failures;
      }
    } catch (const UserError& error) {
      failures += error.code() == ExitCode::config ? 0 : 1;  // another one is running
    }
  }
  return failures;
}

}  // namespace

TEST_CASE("who gets the lease when another gives it back has it as a whole", "[lease]") {
  const ScratchFolder scratch;
  std::array<pid_t, 4> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child == 0) {
      const harness::CapturedLog log;
      ::_exit(std::min(failures_of_one_of_many(scratch / "c", 60), 100));
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(harness::files_below(scratch / "c").size() == 1);  // "lines"
}
