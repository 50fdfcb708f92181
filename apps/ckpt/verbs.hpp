// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/progress_mode.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_diff.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/index_repair.hpp>
#include <fourfold/io/retention.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::program {
class Progress;
}

namespace fourfold::ckpt {

/// What a command line asks for: a verb reads what its own options set. Names of checkpoints are as
/// train::checkpoints_named() takes them.
struct Request {
  std::string checkpoint;
  std::vector<std::string> checkpoints;                 ///< of verify
  std::string to;                                       ///< folder or file to write
  std::int64_t memory_bytes = std::int64_t{256} << 20;  ///< per process
  bool dry_run = false;
  bool json = false;
  ProgressMode progress = ProgressMode::automatic;
  // info
  bool tensors = false;
  bool run_file = false;
  // verify
  bool deep = false;
  // repair-index
  bool trust_payloads = false;
  // diff, with `checkpoint`
  std::string other_checkpoint;
  bool digests_only = false;
  std::int64_t largest = 3;
  // reshard
  std::string mesh;  ///< "tp=2,pp=1,dp=8"
  std::string files = "rank";
  // gc
  io::Retention keep;
  bool set_aside = false;  ///< remove damaged steps that were set aside too
  // export and import
  std::string format;
  std::string tokenizer;  ///< empty: the run's or the folder's; of export also "none"
  std::string foreign;    ///< to import
  std::string dtype = "f32";
  std::uint64_t shard_bytes = 5'000'000'000;
  std::int64_t vocab_multiple = 0;
  bool allow_mixed_tokenizers = false;
  std::int64_t vocab = 0;
  std::int64_t context = 0;
};

// Of each verb its options, and what it does.
void describe_info(CLI::App& verb, Request& request);
ExitCode info(const Request& request);
void describe_verify(CLI::App& verb, Request& request);
ExitCode verify(const Request& request);
void describe_diff(CLI::App& verb, Request& request);
ExitCode diff(const Request& request);
/// Runs on all ranks that a launcher started, or alone.
void describe_reshard(CLI::App& verb, Request& request);
ExitCode reshard(const Request& request);
void describe_gc(CLI::App& verb, Request& request);
ExitCode gc(const Request& request);
void describe_repair_index(CLI::App& verb, Request& request);
ExitCode repair_index(const Request& request);
void describe_merge(CLI::App& verb, Request& request);
ExitCode merge(const Request& request);
void describe_export(CLI::App& verb, Request& request);
ExitCode export_model(const Request& request);
void describe_import(CLI::App& verb, Request& request);
ExitCode import_model(const Request& request);

/// --memory: "256M", "2G", or a number of MiB; at least `least_mib`.
void add_memory_option(CLI::App& verb, std::int64_t& bytes, std::int64_t least_mib,
                       const char* meaning);

/// "1.23 GB/s"; "0 B/s" where no time has passed.
std::string rate_text(std::int64_t bytes, double seconds);

/// Opens what a user names, by this process alone. @throws as train::open_named_checkpoint
io::Checkpoint open(const std::string& path);

/// For a folder that gets a step. @throws UserError (config) where it is a run's log.dir, which
/// holds no steps itself
void refuse_directory_of_run(const std::string& to);

/// What was found out about one step folder.
struct Verified {
  std::filesystem::path path;
  std::int64_t step = -1;           ///< -1: not known
  std::vector<std::string> damage;  ///< empty: intact
  std::int64_t bytes = 0;           ///< read of payload files
  double seconds = 0;
  bool is_gone = false;  ///< it was a step when it was listed, and was removed since
};
/// Of a step that a folder of steps listed: without a manifest it is damaged, not something else.
/// @param deep  reads all of it
Verified verify_listed_step(const std::filesystem::path& folder, bool deep,
                            program::Progress& progress);

/// What reshard or merge wrote, or would write.
struct Written {
  std::filesystem::path path;
  std::optional<comm::MeshShape> mesh;  ///< nothing: one file for no mesh
  std::size_t files = 1;
  double seconds = 0;
  bool dry_run = false;
};
/// What gc removed, or would remove.
struct Removed {
  std::filesystem::path directory;
  std::vector<std::int64_t> steps;
  std::vector<io::PassedOver> passed_over;  ///< entries that look like steps and are none
  std::vector<std::string> leftovers;
  std::optional<std::int64_t> intact;  ///< the newest one that was read whole and is
  bool is_spared = false;              ///< that one was due, and stays
  bool dry_run = false;
};

/// @param of  what was read
std::string written_json(const Written& written, const io::Checkpoint& of);
std::string removed_json(const Removed& removed);

std::string info_json(const io::Checkpoint& checkpoint);
std::string steps_json(const std::filesystem::path& folder,
                       const std::vector<io::Checkpoint>& steps);
std::string verified_json(const std::vector<Verified>& steps);
std::string repair_json(const io::RepairReport& report, bool dry_run);
std::string diff_json(const io::CheckpointDifferences& differences);

}  // namespace fourfold::ckpt
