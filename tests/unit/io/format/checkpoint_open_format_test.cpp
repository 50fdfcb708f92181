// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Other people's programs see our files as plain arrays: h5dump of Debian's hdf5-tools.
#include "child_process.hpp"
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <cstring>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
using harness::read_bytes;
using harness::run_child;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

bool has_h5dump() {
  return run_child({"h5dump", "--version"}).exit_code == 0;
}

/// The bytes of a dataset as h5dump extracts them, in the file's own byte order.
std::string dumped(const fs::path& file, const std::string& dataset, const ScratchFolder& scratch) {
  const fs::path out = scratch / "dumped";
  fs::remove(out);
  const ChildResult result =
      run_child({"h5dump", "-d", dataset, "-b", "FILE", "-o", out.string(), file.string()});
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  return read_bytes(out);
}

std::string coded_bytes(const TensorSpec& tensor) {
  std::string bytes;
  for (std::int64_t index = 0; index < tensor.shape.elements(); ++index) {
    const std::uint64_t bits = coded_bits(tensor, index);
    std::string element(8, '\0');
    std::memcpy(element.data(), &bits, 8);
    bytes += element.substr(0, size_in_bytes(tensor.dtype));
  }
  return bytes;
}

void save_here(const fs::path& directory, std::size_t cut) {
  comm::run_ranks(
      3, [&](comm::Communicator& world) { save_as(directory, all_cuts()[cut], 3, 10, world); });
}

}  // namespace

TEST_CASE("h5dump sees every tensor whole through the index, from any working directory") {
  if (!has_h5dump()) {
    SKIP("no h5dump (package hdf5-tools)");
  }
  const ScratchFolder scratch;
  save_here(scratch / "c", 4);
  const fs::path step = scratch / "c" / "step-000000010";
  for (const TensorSpec& tensor : small_model()) {
    if (tensor.shape.elements() > 0) {
      CAPTURE(tensor.id.str());
      CHECK(dumped(step / "index.h5", "/view/" + tensor.id.str(), scratch) == coded_bytes(tensor));
    }
  }
}

TEST_CASE("a box is a dataset of its payload, with its place in the tensor as attributes") {
  if (!has_h5dump()) {
    SKIP("no h5dump (package hdf5-tools)");
  }
  const ScratchFolder scratch;
  save_here(scratch / "c", 1);
  const fs::path payload = scratch / "c" / "step-000000010" / "shard-00001-of-00003.h5";
  const TensorSpec tensor = small_model()[0];  // [31, 13] by rows: rank 1 has rows 11 to 20
  const std::string whole = coded_bytes(tensor);
  CHECK(dumped(payload, "/t/embed.weight/master/b1", scratch) ==
        whole.substr(11 * 13 * 4, 10 * 13 * 4));
  const ChildResult header =
      run_child({"h5dump", "-A", "-d", "/t/embed.weight/master/b1", payload.string()});
  INFO(header.output);
  for (const char* said : {"H5T_IEEE_F32LE", "( 10, 13 )", "\"global_shape\"", "31, 13",
                           "\"offset\"", "11, 0", "\"f32\"", "\"master\"", "\"first_chunk\""}) {
    CHECK(header.output.find(said) != std::string::npos);
  }
  const ChildResult types =
      run_child({"h5dump", "-H", (scratch / "c/step-000000010/index.h5").string()});
  CHECK(types.output.find("16-bit little-endian floating-point") != std::string::npos);
}

TEST_CASE("payloads say whose they are, and the first one what the index says besides extents") {
  if (!has_h5dump()) {
    SKIP("no h5dump (package hdf5-tools)");
  }
  const ScratchFolder scratch;
  save_here(scratch / "c", 1);
  const fs::path step = scratch / "c" / "step-000000010";
  const fs::path first = step / "shard-00000-of-00003.h5";
  const auto attribute = [](const fs::path& file, const std::string& path) {
    const std::string text = run_child({"h5dump", "-a", path, file.string()}).output;
    const std::size_t begin = text.find("(0): ") + 5;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  for (const char* name : {"shard-00000-of-00003.h5", "shard-00001-of-00003.h5"}) {
    CHECK(attribute(step / name, "/step") == "10");
    CHECK(attribute(step / name, "/mesh") == "1, 3, 1, 1");
    CHECK(attribute(step / name, "/files") == "3");
    CHECK(attribute(step / name, "/save") == attribute(first, "/save"));
  }
  CHECK(attribute(first, "/save").size() == 34);
  // Rows of the first tensor, then of the next one: one chunk each.
  CHECK(attribute(first, "/t/embed.weight/master/b0/first_chunk") == "0");
  CHECK(attribute(first, "/t/layers.0.norm.weight/master/b0/first_chunk") == "1");
  CHECK(attribute(first, "/t/layers.0.empty/exp_avg/global_shape") == "0, 4");
  for (const char* name :
       {"/scalars/integers/seed", "/scalars/reals/loss_scale", "/scalars/texts/config.toml"}) {
    CHECK(dumped(first, name, scratch) == dumped(step / "index.h5", name, scratch));
  }
  CHECK(dumped(first, "/scalars/integers/seed", scratch) == std::string("\xd2\x04\0\0\0\0\0\0", 8));
  CHECK(run_child(
            {"h5dump", "-d", "/scalars/integers/seed", (step / "shard-00001-of-00003.h5").string()})
            .exit_code != 0);
}

TEST_CASE("a missing payload shows as NaN in the whole-tensor view, never as zeros") {
  if (!has_h5dump()) {
    SKIP("no h5dump (package hdf5-tools)");
  }
  const ScratchFolder scratch;
  save_here(scratch / "c", 1);
  const fs::path step = scratch / "c" / "step-000000010";
  fs::remove(step / "shard-00001-of-00003.h5");
  for (const std::size_t index : {std::size_t{0}, std::size_t{15}}) {  // f32 and bf16
    const TensorSpec tensor = small_model()[index];
    const std::string got = dumped(step / "index.h5", "/view/" + tensor.id.str(), scratch);
    const std::string whole = coded_bytes(tensor);
    REQUIRE(got.size() == whole.size());
    const std::int64_t row_elements = tensor.shape[1];
    const Range lost = even_part(tensor.shape[0], 3, 1);
    for (std::int64_t element = 0; element < tensor.shape.elements(); ++element) {
      const std::size_t bytes = size_in_bytes(tensor.dtype);
      const std::string bits = got.substr(static_cast<std::size_t>(element) * bytes, bytes);
      const std::int64_t row = element / row_elements;
      if (row < lost.begin || row >= lost.end()) {
        REQUIRE(bits == whole.substr(static_cast<std::size_t>(element) * bytes, bytes));
        continue;
      }
      std::uint32_t word = 0;  // a 16-bit float's bits are the upper half of a NaN of 32
      std::memcpy(reinterpret_cast<char*>(&word) + (4 - bytes), bits.data(), bytes);
      REQUIRE(std::isnan(std::bit_cast<float>(word)));
    }
  }
}

TEST_CASE("the same state gives the same bytes, twice") {
  const ScratchFolder scratch;
  save_here(scratch / "a", 5);
  save_here(scratch / "b", 5);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "a")) {
    if (entry.is_regular_file()) {
      CAPTURE(entry.path().string());
      CHECK(read_bytes(entry.path()) ==
            read_bytes(scratch / "b" / fs::relative(entry.path(), scratch / "a").string()));
      ++files;
    }
  }
  CHECK(files == 6);  // three payloads, index, manifest, LATEST
}
