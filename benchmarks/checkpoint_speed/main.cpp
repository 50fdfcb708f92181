// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// checkpoint_speed: saving and loading the state of a model, beside what the disk and the page
/// cache do with the same bytes when nothing is checked; or planning a save for very many ranks.
/// Prints one JSON object per line; measure.py makes a table of them.
#include "raw_files.hpp"
#include "saved_state.hpp"

#include <fourfold/comm/algorithm.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/io/background_saver.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace fourfold;
using benchmarks::HeldState;
namespace fs = std::filesystem;

struct Options {
  std::string directory;
  double state_gib = 2;
  int repeats = 5;
  std::string saved = "dp=2,zero=1";
  std::vector<std::string> loaded = {"dp=2,zero=1", "pp=2", "tp=2", "dp=2"};
  std::string planned;
  bool save_only = false;
  int share_reads_from = 0;
  bool load_only = false;
  bool background = false;
};

/// Seconds until the last rank is done.
double seconds_of(comm::Communicator& world, const std::function<void()>& work) {
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  work();
  world.barrier();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return comm::all_reduce_scalar(world, elapsed.count(), comm::ReduceOp::max);
}

void print(comm::Communicator& world, const std::string& what, std::int64_t bytes,
           const std::vector<double>& raw_s, const std::vector<double>& ours_s) {
  if (world.rank() == 0) {
    fmt::print("{{\"what\": \"{}\", \"bytes\": {}, \"raw_s\": [{:.4f}], \"ours_s\": [{:.4f}]}}\n",
               what, bytes, fmt::join(raw_s, ", "), fmt::join(ours_s, ", "));
    std::fflush(stdout);
  }
}

class Measurement {
 public:
  Measurement(const Options& options, comm::Communicator& world)
      : options_(options),
        world_(world),
        run_(benchmarks::run_of(options.state_gib)),
        checkpoints_(fs::path(options.directory) / "checkpoints"),
        raw_(fs::path(options.directory) / "raw") {}

  /// Leaves the last checkpoint there.
  void save() {
    const benchmarks::CutState target = benchmarks::cut_for(run_, options_.saved);
    const HeldState state(target, world_.rank(), true);
    std::vector<std::span<const std::byte>> spans;
    for (const std::span<std::byte> span : state.spans()) {
      spans.emplace_back(span);
    }
    std::array<std::vector<double>, 2> raw_s;  // without and with blocks reserved beforehand
    std::vector<double> ours_s;
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      for (const bool reserves : {false, true}) {
        alone([&] {
          fs::remove_all(raw_);
          fs::create_directories(raw_);
        });
        raw_s[reserves ? 1 : 0].push_back(seconds_of(world_, [&] {
          benchmarks::write_raw(raw_ / std::to_string(world_.rank()), spans, reserves);
        }));
      }
      alone([&] {
        fs::remove_all(raw_);
        fs::remove_all(checkpoints_);
      });
      ours_s.push_back(seconds_of(world_, [&] {
        io::CheckpointStore(checkpoints_)
            .save({.step = 1,
                   .mesh = target.shape,
                   .scalars = {{{"seed", 1}}, {}, {{"config.toml", to_toml(run_)}}},
                   .tensors = target.layouts,
                   .pieces = state.pieces()},
                  world_);
      }));
    }
    const std::int64_t bytes = total(state.bytes());
    print(world_, "save " + options_.saved, bytes, raw_s[0], ours_s);
    print(world_, "save " + options_.saved + " reserved", bytes, raw_s[1], ours_s);
  }

  /// How long a save in the background blocks a rank, beside memcpy of what it holds.
  /// @param replicas  whether all ranks hold what rank 0 does, the same bits
  void block(const std::string& mesh, bool replicas) {
    const benchmarks::CutState target = benchmarks::cut_for(run_, mesh);
    const HeldState state(target, replicas ? 0 : world_.rank(), true);
    std::vector<std::byte> copy(static_cast<std::size_t>(state.bytes()), std::byte{1});
    const io::CheckpointStore store(checkpoints_);
    io::BackgroundSaver saver(store, target.layouts, world_);
    std::vector<double> raw_s;
    std::vector<double> ours_s;
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      alone([&] { fs::remove_all(checkpoints_); });
      raw_s.push_back(seconds_of(world_, [&] {
        std::byte* to = copy.data();
        for (const std::span<std::byte> span : state.spans()) {
          to = std::copy(span.begin(), span.end(), to);
        }
      }));
      ours_s.push_back(seconds_of(world_, [&] {
        saver.begin({.step = 1,
                     .mesh = target.shape,
                     .scalars = {{{"seed", 1}}, {}, {{"config.toml", to_toml(run_)}}},
                     .tensors = target.layouts,
                     .pieces = state.pieces()},
                    world_);
      }));
      saver.finish(world_);
    }
    print(world_, "block " + mesh, total(state.bytes()), raw_s, ours_s);
  }

  void load(const std::string& mesh, bool cold) {
    const benchmarks::CutState target = benchmarks::cut_for(run_, mesh);
    const HeldState state(target, world_.rank(), false);
    const std::vector<std::span<std::byte>> spans = state.spans();
    const io::Checkpoint checkpoint = io::find_checkpoint(checkpoints_, world_);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(checkpoint.path())) {
      if (entry.path().filename().string().starts_with("shard-")) {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    const std::uint64_t begin = first_byte(state.bytes(), files);
    std::vector<double> raw_s;
    std::vector<double> ours_s;
    const auto prepare = [&] {
      world_.barrier();
      if (cold) {  // each rank: it may see files of its own
        benchmarks::drop_pages(checkpoints_);
      }
      world_.barrier();
    };
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      prepare();
      raw_s.push_back(seconds_of(world_, [&] { benchmarks::read_raw(files, begin, spans); }));
      prepare();
      ours_s.push_back(seconds_of(world_, [&] {
        const io::LoadReport report =
            io::load(io::find_checkpoint(checkpoints_, world_), state.wanted(), world_, {},
                     {target.layouts, options_.share_reads_from});
        if (!report.intact()) {
          throw SystemError(ExitCode::data_corrupt, report.damage.front());
        }
      }));
    }
    print(world_, fmt::format("load {} {}", mesh, cold ? "cold" : "warm"), total(state.bytes()),
          raw_s, ours_s);
  }

 private:
  /// By rank 0; the others wait.
  void alone(const std::function<void()>& work) {
    world_.barrier();
    if (world_.rank() == 0) {
      work();
    }
    world_.barrier();
  }
  std::int64_t total(std::int64_t bytes) {
    return comm::all_reduce_scalar(world_, bytes, comm::ReduceOp::sum);
  }
  /// Where this rank begins to read, so that the ranks read all there is, or all of it each.
  std::uint64_t first_byte(std::int64_t mine, const std::vector<fs::path>& files) {
    std::uint64_t there = 0;
    for (const fs::path& file : files) {
      there += fs::file_size(file);
    }
    return world_.rank() == 0 ? 0 : there - static_cast<std::uint64_t>(mine);
  }

  const Options& options_;
  comm::Communicator& world_;
  runfile::RunConfig run_;
  fs::path checkpoints_;
  fs::path raw_;
};

/// One rank's work to know what it writes: layouts, the word that ranks compare, the plan.
void plan(const Options& options, comm::Communicator& world) {
  runfile::RunConfig run = benchmarks::run_of(options.state_gib);
  run.model.layers = 37;  // 1008 tensors
  const auto seconds = [](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    benchmarks::CutState target;
    io::SavePlan plan;
    std::string word;
    const double layouts_s = seconds([&] { target = benchmarks::cut_for(run, options.planned); });
    const auto ranks = static_cast<int>(target.shape.ranks());
    const double word_s = seconds([&] { word = io::plan_fingerprint(target.layouts, ranks); });
    const double plan_s = seconds([&] { plan = io::plan_save(target.layouts, ranks); });
    if (world.rank() == 0) {
      fmt::print(
          "{{\"what\": \"plan {}\", \"ranks\": {}, \"tensors\": {}, \"extents\": {}, "
          "\"layouts_s\": {:.4f}, \"fingerprint_s\": {:.4f}, \"plan_s\": {:.4f}}}\n",
          options.planned, ranks, target.layouts.size(), plan.extents.size(), layouts_s, word_s,
          plan_s);
    }
  }
}

ExitCode run(const Options& options) {
  const comm::MpiRuntime mpi(nullptr, nullptr);
  if (!options.planned.empty()) {
    plan(options, mpi.world());
    return ExitCode::finished;
  }
  Measurement measurement(options, mpi.world());
  if (options.background) {
    measurement.block("dp=2,zero=1", false);
    measurement.block("dp=2", true);
    return ExitCode::finished;
  }
  if (!options.load_only) {
    measurement.save();
  }
  for (const std::string& mesh : options.loaded) {
    if (!options.save_only) {
      measurement.load(mesh, false);
      measurement.load(mesh, true);
    }
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Saving and loading checkpoints beside the disk by itself", "checkpoint_speed"};
  Options options;
  command.add_option("directory", options.directory, "on the disk in question")->required();
  command.add_option("--state-gib", options.state_gib, "masters and moments")
      ->check(CLI::Range(1.0, 1e4))
      ->capture_default_str();
  command.add_option("--repeats", options.repeats, "measurements of each kind, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--saved", options.saved, "the mesh that saves")->capture_default_str();
  command.add_option("--loaded", options.loaded, "the meshes that load")->capture_default_str();
  command.add_option("--share-reads-from", options.share_reads_from,
                     "as checkpoint.share_reads_from, when loading");
  command.add_flag("--save-only", options.save_only, "leaves a checkpoint there");
  command.add_flag("--load-only", options.load_only, "loads what is there");
  command.add_flag("--background", options.background,
                   "how long saves in the background block two ranks, beside memcpy");
  command.add_option("--plan", options.planned, "plans a save of this mesh instead");
  return program::run("checkpoint_speed", [&] {
    if (const auto end = program::parse(command, argc, argv)) {
      return *end;
    }
    return run(options);
  });
}
