// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
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

namespace CLI {
class App;
}
namespace fourfold::program {
class Progress;
}

namespace fourfold::ckpt {

/// Of --memory, per process.
inline constexpr std::int64_t default_memory_bytes = std::int64_t{256} << 20;

struct InfoRequest {
  std::string path;  ///< as train::checkpoints_named() takes it, like all that name a checkpoint
  bool tensors = false;
  bool run_file = false;
  bool json = false;
};
void describe_info(CLI::App& verb, InfoRequest& request);
ExitCode info(const InfoRequest& request);

struct VerifyRequest {
  std::vector<std::string> paths;
  bool deep = false;
  bool json = false;
  std::string progress = "auto";
};
void describe_verify(CLI::App& verb, VerifyRequest& request);
ExitCode verify(const VerifyRequest& request);

struct DiffRequest {
  std::string a;
  std::string b;
  bool digests_only = false;
  std::int64_t largest = 3;
  std::int64_t memory_bytes = default_memory_bytes;
  bool json = false;
  std::string progress = "auto";
};
void describe_diff(CLI::App& verb, DiffRequest& request);
ExitCode diff(const DiffRequest& request);

struct ReshardRequest {
  std::string from;
  std::string to;    ///< a folder of steps
  std::string mesh;  ///< "tp=2,pp=1,dp=8"
  std::string files = "rank";
  std::int64_t memory_bytes = default_memory_bytes;
  bool dry_run = false;
  bool json = false;
  std::string progress = "auto";
};
/// Runs on all ranks that a launcher started, or alone.
void describe_reshard(CLI::App& verb, ReshardRequest& request);
ExitCode reshard(const ReshardRequest& request);

struct GcRequest {
  std::string directory;
  io::Retention keep;
  bool set_aside = false;  ///< remove damaged steps that were set aside too
  bool dry_run = false;
  bool json = false;
  std::string progress = "auto";
};
void describe_gc(CLI::App& verb, GcRequest& request);
ExitCode gc(const GcRequest& request);

struct RepairIndexRequest {
  std::string folder;
  bool trust_payloads = false;
  bool dry_run = false;
  bool json = false;
  std::string progress = "auto";
};
void describe_repair_index(CLI::App& verb, RepairIndexRequest& request);
ExitCode repair_index(const RepairIndexRequest& request);

struct MergeRequest {
  std::string from;
  std::string file;
  std::int64_t memory_bytes = default_memory_bytes;
  bool dry_run = false;
  bool json = false;
  std::string progress = "auto";
};
void describe_merge(CLI::App& verb, MergeRequest& request);
ExitCode merge(const MergeRequest& request);

struct ExportRequest {
  std::string format;
  std::string from;
  std::string to;
  std::string dtype = "f32";
  std::uint64_t shard_bytes = 5'000'000'000;
  std::int64_t vocab_multiple = 0;
  std::string tokenizer;  ///< of hf; empty: the run's; "none": none
  bool allow_mixed_tokenizers = false;
  std::int64_t memory_bytes = default_memory_bytes;
  bool dry_run = false;
  std::string progress = "auto";
};
void describe_export(CLI::App& verb, ExportRequest& request);
ExitCode export_model(const ExportRequest& request);

struct ImportRequest {
  std::string format;
  std::string from;
  std::string to;
  std::int64_t vocab = 0;
  std::int64_t context = 0;
  std::string tokenizer;
  std::int64_t memory_bytes = default_memory_bytes;
  bool dry_run = false;
  std::string progress = "auto";
};
void describe_import(CLI::App& verb, ImportRequest& request);
ExitCode import_model(const ImportRequest& request);

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

namespace fourfold::ckpt {

/// --memory: "256M", "2G", or a number of MiB; at least `least_mib`.
void add_memory_option(CLI::App& verb, std::int64_t& bytes, std::int64_t least_mib,
                       const char* meaning);

}  // namespace fourfold::ckpt
