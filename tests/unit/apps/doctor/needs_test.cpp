// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "healthy_ranks.hpp"
#include "run_needs.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/train/elastic_mesh.hpp>
#include <fourfold/train/load_run.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::doctor {
namespace {

using Options = std::vector<std::string>;

/// A run of one rank that cannot become smaller, and a node with some memory free.
class OneRank {
 public:
  std::int64_t needed_bytes(const Options& options) const {
    return needs_of({.run_file = run_file_, .overrides = options, .directories = {}}, 0, 1, 1)
        .rank_bytes;
  }
  bool fits_for_doctor(const Options& options, std::int64_t free_bytes) const {
    Ranks ranks = healthy_ranks(1, 1);
    ranks[0].needed_bytes = needed_bytes(options);
    ranks[0].available_bytes = free_bytes;
    return memory_check(ranks).status() != Status::fail;
  }
  bool fits_for_job(const Options& options, std::int64_t free_bytes) const {
    try {
      train::choose_mesh(config(options), {.node_bytes = static_cast<std::size_t>(free_bytes)});
      return true;
    } catch (const UserError&) {
      return false;
    }
  }
  std::int64_t parameters() const { return model::parameter_count(config({}).config.model); }

 private:
  runfile::EffectiveConfig config(const Options& options) const {
    return train::load_run(run_file_, options);
  }
  harness::ScratchFolder folder_;
  std::string run_file_ =
      folder_.write("run.toml",
                    "[model]\nlayers = 2\nhidden = 32\nheads = 2\nvocab = 257\ncontext = 32\n"
                    "[train]\nmicro_batch = 1\n[data]\ntrain = [\"absent\"]\n");
};

}  // namespace

TEST_CASE("copies of checkpoints count alike for doctor and for the mesh of a job", "[doctor]") {
  const OneRank run;
  const Options copied{"checkpoint.async=true", "checkpoint.async_copies=2"};
  const std::int64_t without = run.needed_bytes({});
  const std::int64_t with = run.needed_bytes(copied);
  CHECK(with - without == 2 * 12 * run.parameters());  // f32 masters and two moments
  for (const std::int64_t free_bytes : {without - 1, without, with - 1, with}) {
    CAPTURE(without, with, free_bytes);
    CHECK(run.fits_for_doctor({}, free_bytes) == (free_bytes >= without));
    CHECK(run.fits_for_job({}, free_bytes) == (free_bytes >= without));
    CHECK(run.fits_for_doctor(copied, free_bytes) == (free_bytes >= with));
    CHECK(run.fits_for_job(copied, free_bytes) == (free_bytes >= with));
  }
}

}  // namespace fourfold::doctor
