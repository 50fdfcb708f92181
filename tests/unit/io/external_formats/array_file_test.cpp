// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "child_process.hpp"
#include "save/shared_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/io/array_file.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <numeric>
#include <vector>

using namespace fourfold;
using harness::Findings;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t row_count = 7;
constexpr std::int64_t column_count = 3;

std::vector<io::ArrayToWrite> arrays() {
  return {{"/group/value", DType::f32, {row_count, column_count}},
          {"/number", DType::i64, {row_count}}};
}

/// The rows that this rank writes: every size()-th, with values that tell the element.
void write_mine(io::ArrayFile& file, const comm::Communicator& world) {
  for (std::int64_t row = world.rank(); row < row_count; row += world.size()) {
    std::vector<float> values(column_count);
    std::iota(values.begin(), values.end(), static_cast<float>(row * column_count) + 0.5F);
    file.write_rows("/group/value", row, {values.data(), {1, column_count}});
    file.write_rows("/number", row, {&row, {1}});
  }
}

/// As h5dump prints it, without spaces and line ends.
std::string dumped(const fs::path& file, const std::string& dataset) {
  std::string text =
      harness::run_child({"h5dump", "-y", "-w", "0", "-d", dataset, file.string()}).output;
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ranks fill an array file side by side and another reader sees the whole") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    const io_test::SharedFolder folder(world);
    const fs::path path = folder.path() / "out.h5";
    {
      io::ArrayFile file(path, arrays(), {{"format", "test 1"}}, world);
      write_mine(file, world);
      findings.check(!fs::exists(path), "nothing under the name before it is published");
      world.barrier();
      file.publish();
    }
    findings.check(fs::exists(path) && harness::files_below(folder.path()).size() == 1,
                   "published");
    if (world.rank() == 0 && harness::run_child({"h5dump", "--version"}).exit_code == 0) {
      findings.check(contains(dumped(path, "/number"), "{0,1,2,3,4,5,6}"), "integers");
      findings.check(contains(dumped(path, "/group/value"),
                              "DATASPACESIMPLE{(7,3)/(7,3)}DATA{0.5,1.5,2.5,3.5,4.5,5.5,6.5,"),
                     "reals: " + dumped(path, "/group/value"));
      findings.check(contains(dumped(path, "/group/value"), ",18.5,19.5,20.5}"), "last row");
    }
  });
}

TEST_CASE("an array file that is not published leaves what was there before") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    const io_test::SharedFolder folder(world);
    const fs::path path = folder.path() / "out.h5";
    if (world.rank() == 0) {
      std::ofstream(path) << "before";
      std::ofstream(path.string() + ".partial") << "somebody's";
    }
    world.barrier();
    {
      io::ArrayFile file(path, arrays(), {}, world);
      write_mine(file, world);
      world.barrier();
    }
    world.barrier();
    findings.check(harness::read_bytes(path) == "before", "untouched");
    findings.check(harness::files_below(folder.path()).size() == 2, "no rest");
  });
}

TEST_CASE(
    "two that write an array file of one name at a time publish it whole, one then the other") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    const io_test::SharedFolder folder(world);
    const fs::path path = folder.path() / "out.h5";
    io::ArrayFile first(path, arrays(), {}, world);
    write_mine(first, world);
    io::ArrayFile second(path, arrays(), {}, world);
    first.publish();
    const std::string whole = harness::read_bytes(path);
    world.barrier();
    write_mine(second, world);
    second.publish();
    findings.check(harness::read_bytes(path) == whole, "the same file");
  });
}

TEST_CASE("a folder that cannot be written to is an error of every rank") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    try {
      const io::ArrayFile file("/proc/no/such/out.h5", arrays(), {}, world);
      findings.check(false, "must throw");
    } catch (const UserError& error) {
      findings.check(error.code() == ExitCode::cannot_write, "exit code");
      findings.check(contains(error.what(), "/proc/no/such/out.h5"), error.what());
    }
  });
}
