// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The run file: TOML tables as nested structs by owner. The defaults are here; unit, bounds and
/// meaning of every key are in run_key_<table>.cpp. Parsing, printing, help and docs/run-file.md
/// all read both, by run_keys().
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/progress_mode.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/comm/algorithm.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/recompute.hpp>
#include <fourfold/parallel/compression.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/runfile/learning_rate.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::runfile {

using fourfold::name;  // of what has names_of()

/// How long ZeRO-3 keeps gathered weights.
enum class ZeroKeep : std::uint8_t { micro_batch, step };
constexpr auto names_of(ZeroKeep /*any*/) {
  using enum ZeroKeep;
  return std::to_array<Named<ZeroKeep>>({{micro_batch, "micro_batch"}, {step, "step"}});
}

/// When gradients are reduced over the data plane.
enum class GradientReduce : std::uint8_t { automatic, step, micro_batch };
constexpr auto names_of(GradientReduce /*any*/) {
  using enum GradientReduce;
  return std::to_array<Named<GradientReduce>>(
      {{automatic, "auto"}, {step, "step"}, {micro_batch, "micro_batch"}});
}

/// What the ranks of the dp axis do together.
enum class DataParallelMode : std::uint8_t {
  sync,   ///< every step
  local,  ///< nothing for many steps, then an average of their weights
};
constexpr auto names_of(DataParallelMode /*any*/) {
  using enum DataParallelMode;
  return std::to_array<Named<DataParallelMode>>({{sync, "sync"}, {local, "local"}});
}

/// [mesh]. Feed it to comm::resolve_mesh() once the number of ranks is known.
struct MeshConfig {
  comm::MeshShape shape{.dp = 0};  ///< dp = 0: auto, what the other axes leave of the ranks
  int zero = 0;                    ///< ZeRO stage: what the data plane shares out
  int zero_group = 0;              ///< ranks that share it out; 0: auto, all of the data plane
  ZeroKeep zero3_keep = ZeroKeep::micro_batch;
  int tile_linear = 1;  ///< tiles of a matrix that ZeRO-3 gathers one after the other
  GradientReduce dp_reduce = GradientReduce::automatic;
  parallel::GradientCompression dp_compress = {};
  DataParallelMode dp_mode = DataParallelMode::sync;
  std::int64_t average_every = 100;  ///< local: steps of a round
  bool sequence_parallel = true;     ///< on the tp axis
  std::string schedule = "1f1b";     ///< of the pipeline: a name, or a CSV file
  int chunks = 0;                    ///< per pipeline rank; 0: auto, what the schedule usually has
  std::vector<std::int64_t> stage_layers = {};  ///< of each chunk along the model; empty: by cost
  parallel::ContextMode context_mode = parallel::ContextMode::ring;
  double dp_bucket_mb = 25;  ///< gradients are reduced in buckets of this many MB (10^6 bytes)
  comm::Algorithm host_collectives = comm::Algorithm::automatic;
  bool share_devices = false;
  friend bool operator==(const MeshConfig&, const MeshConfig&) = default;
};

/// Whether micro-batches are launched as CUDA graphs.
enum class CudaGraphs : std::uint8_t { automatic, always, never };
constexpr auto names_of(CudaGraphs /*any*/) {
  using enum CudaGraphs;
  return std::to_array<Named<CudaGraphs>>(
      {{automatic, "auto"}, {always, "true"}, {never, "false"}});
}

/// What weights and activations are stored in.
inline constexpr std::array stored_dtypes{DType::f32, DType::bf16, DType::f16};

/// The largest that train.loss_scale and its like may be, and become.
inline constexpr std::int64_t largest_loss_scale = std::int64_t{1} << 40;

/// [train]
struct TrainConfig {
  std::int64_t global_batch = 32;  ///< sequences per update, all ranks together
  std::int64_t micro_batch = 4;    ///< sequences per rank and forward pass
  std::int64_t steps = 1000;       ///< updates after which the run is finished, restarts included
  std::int64_t seed = 1234;
  DType precision = DType::f32;  ///< one of stored_dtypes
  /// f16: the loss is multiplied by it for the backward pass; 0: auto, moved by overflows. This and
  /// the next ones are powers of two, but for the window
  std::int64_t loss_scale = 0;
  std::int64_t loss_scale_initial = 65536;
  std::int64_t loss_scale_window = 1000;  ///< steps without overflow after which it doubles
  std::int64_t loss_scale_min = 1;
  model::Recompute recompute;  ///< what is kept from a block's forward to its backward pass
  int head_chunks = 1;         ///< of rows, that logits and loss are made in
  /// file of the fastest ways of products; empty: they are made the way that the library puts first
  std::string matmul_tuning_file = {};
  bool deterministic_attention = true;  ///< on GPUs; false: faster, with less memory
  CudaGraphs cuda_graphs = CudaGraphs::automatic;
  /// also after the last step; no evaluation without data.validation
  std::int64_t eval_every_steps = 100;
  std::int64_t eval_batches = 20;  ///< global batches per evaluation; 0: all of data.validation
  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

enum class OptimizerKind : std::uint8_t { adamw, adam, sgd };
constexpr auto names_of(OptimizerKind /*any*/) {
  using enum OptimizerKind;
  return std::to_array<Named<OptimizerKind>>({{adamw, "adamw"}, {adam, "adam"}, {sgd, "sgd"}});
}

/// What local SGD makes of the average of the replicas' weights.
enum class OuterOptimizerKind : std::uint8_t { average, nesterov };
constexpr auto names_of(OuterOptimizerKind /*any*/) {
  using enum OuterOptimizerKind;
  return std::to_array<Named<OuterOptimizerKind>>({{average, "average"}, {nesterov, "nesterov"}});
}

/// [optim]
struct OptimConfig {
  OptimizerKind name = OptimizerKind::adamw;
  /// optim.schedule, lr, min_lr, warmup_steps, decay_steps, cooldown_steps
  LearningRateSchedule schedule;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0.9;             ///< sgd
  double weight_decay = 0.1;         ///< on matrices and embeddings; norms and biases do not decay
  double clip_norm = 1.0;            ///< 0: no clipping
  bool stochastic_rounding = false;  ///< of weights to bf16
  OuterOptimizerKind outer = OuterOptimizerKind::average;
  double outer_lr = 0.7;        ///< nesterov
  double outer_momentum = 0.9;  ///< nesterov
  friend bool operator==(const OptimConfig&, const OptimConfig&) = default;
};

/// [data]
struct DataConfig {
  std::vector<std::string> train;       ///< token files, prefixes or globs
  std::vector<std::string> validation;  ///< held-back ones; empty: no evaluation
  /// "byte", or a file; samples are decoded with it. Where nobody writes it, the token files' own
  std::string tokenizer = "byte";
  bool allow_mixed_tokenizers = false;
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

/// Where the optimizer's state (f32 masters and moments) lies.
enum class StateTier : std::uint8_t { none, cpu, nvme };
constexpr auto names_of(StateTier /*any*/) {
  using enum StateTier;  // a path follows that of nvme
  return std::to_array<Named<StateTier>>({{none, "none"}, {cpu, "cpu"}, {nvme, "nvme:"}});
}

/// [offload]
struct OffloadConfig {
  StateTier optimizer = StateTier::none;
  std::string nvme_directory = {};  ///< for nvme
  double buffer_mb = 100;           ///< memory through which offloaded state passes (10^6 bytes)
  bool activations_on_host = false;
  friend bool operator==(const OffloadConfig&, const OffloadConfig&) = default;
};
/// "none", "cpu", "nvme:PATH"
std::string optimizer_tier_text(const OffloadConfig& offload);

/// What becomes of a checkpoint that is due while another is still being written.
enum class BusySave : std::uint8_t { wait, skip };
constexpr auto names_of(BusySave /*any*/) {
  using enum BusySave;
  return std::to_array<Named<BusySave>>({{wait, "wait"}, {skip, "skip"}});
}

/// [checkpoint]
struct CheckpointConfig {
  std::string dir;                 ///< after resolve(): never empty
  std::int64_t every_steps = 500;  ///< 0: only at the end
  std::int64_t keep_last = 3;      ///< 0: keep all
  std::int64_t keep_every_steps = 0;
  std::int64_t keep_best = 0;  ///< by validation loss
  std::string files = "rank";  ///< "rank", "node" or the number of files
  bool async = false;          ///< written from a copy while the run computes
  std::int64_t async_copies = 1;
  BusySave when_busy = BusySave::wait;
  double margin_s = 5;         ///< left to the end of the job when the last save is over
  std::string node_local_dir;  ///< of each node, for steps in between; empty: none
  std::int64_t node_local_every_steps = 0;  ///< > 0 with node_local_dir
  std::int64_t node_local_keep_last = 1;
  bool node_local_partner = true;  ///< the next node has copies
  std::int64_t share_reads_from = 4;
  std::string resume = "auto";  ///< "auto", "never" or a step directory
  bool weights_only = false;    ///< of the step directory
  friend bool operator==(const CheckpointConfig&, const CheckpointConfig&) = default;
};

/// [log]
struct LogConfig {
  std::string dir = "run";  ///< metrics.jsonl, status.json, config.toml, report.html, exit.json
  /// steps between records and log lines; the first and last step always
  std::int64_t every_steps = 1;
  bool tensorboard = true;
  bool report = true;
  bool trace = false;  ///< trace.json and timeline.svg
  std::int64_t trace_steps = 3;
  double peak_tflops = 0;  ///< of a rank's device, for MFU; 0: what is known of it
  ProgressMode progress = ProgressMode::automatic;
  friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

/// [watchdog]
struct WatchdogConfig {
  bool enabled = true;
  double deadline_s = 600;  ///< that a rank may wait for others in one operation
  double silence_s = 60;    ///< without a sign of life from a rank
  double start_s = 300;     ///< that ranks may wait in MPI_Init; 0: not watched
  friend bool operator==(const WatchdogConfig&, const WatchdogConfig&) = default;
};

struct RunConfig {
  std::string preset;  ///< model.preset; the values it brought are in `model`
  model::Architecture model;
  MeshConfig mesh;
  TrainConfig train;
  OptimConfig optim;
  OffloadConfig offload;
  DataConfig data;
  CheckpointConfig checkpoint;
  LogConfig log;
  WatchdogConfig watchdog;
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// Where the value of a key comes from.
struct Origin {
  enum class Source : std::uint8_t { default_value, preset, derived, file, command_line };
  Source source = Source::default_value;
  std::string text;  ///< preset name, the key it is derived from, or the file's name
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  std::string str()
      const;  ///< "default", "preset gpt2-124m", "from train.steps", "run.toml:7", "--set"
  std::string where()
      const;  ///< "run.toml:7:12" or "--set" for errors; empty unless a person wrote the value
};

/// Origin by full key name ("train.steps"); keys that are absent are at their default.
using Origins = std::map<std::string, Origin, std::less<>>;

/// A run file as it will be used: defaults, preset, file and --set laid over each other in this
/// order, derived values filled in, validated.
struct EffectiveConfig {
  RunConfig config;
  Origins origins = {};
  /// values that were written but have no effect, one line each
  std::vector<std::string> warnings = {};
  /// what was found out about values that nobody wrote, one line each
  std::vector<std::string> notes = {};
};

/// Logs the warnings and the notes, on rank 0.
void log_remarks(const EffectiveConfig& effective);

/// The text of a run file. @throws UserError (exit code config) when it cannot be read
std::string run_file_text(const std::filesystem::path& file);

/// Reads and validates a run file. Paths inside it are relative to the working directory, as on a
/// command line.
/// @param overrides  texts of --set, "table.key=value" with a TOML value; quotes around strings may
/// be left out
/// @throws UserError (exit code config) that lists every problem as file:line:column with a
/// suggestion
EffectiveConfig load_run_config(const std::filesystem::path& file,
                                std::span<const std::string> overrides = {});

/// log.dir of a run file that load_run_config() refuses, so that the refusal can be told there.
/// Whatever else is wrong with it, or with other overrides, is passed over.
/// @throws UserError (exit code config) when the file cannot be read or is no TOML
std::string log_dir_of(const std::filesystem::path& file,
                       std::span<const std::string> overrides = {});

/// The folder of log.dir that has the checkpoints unless checkpoint.dir says otherwise.
inline constexpr const char* checkpoints_in_log_dir = "checkpoints";

/// Where a run writes, as its run file or its config.toml says.
struct RunPlaces {
  std::string log_dir;
  std::string checkpoint_dir;
};
/// Whatever else is in the file is passed over. @throws as log_dir_of()
RunPlaces places_of(const std::filesystem::path& file);

/// load_run_config() from text; `file_name` is only used in messages.
EffectiveConfig parse_run_config(std::string_view toml, const std::string& file_name,
                                 std::span<const std::string> overrides = {});

/// A mesh in a word, "dp=2,tp=2,zero=1", as overrides of a run file: keys of [mesh], or any key
/// with its table in front ("train.micro_batch=1"). An axis that is not named has degree 1.
/// @throws UserError (exit code config) for a key without a value, or with two
std::vector<std::string> mesh_overrides(const std::string& mesh);

/// A configuration that this program wrote earlier (a checkpoint's, config.toml of a run). Keys
/// that are gone (find_former_key()) are left out, and nothing is validated beyond types.
/// @throws UserError (exit code config) where it has keys that this version never had: a newer one
///   wrote it, and without them the run may be another
RunConfig parse_saved_config(std::string_view toml, const std::string& file_name);

/// Fills in what is derived from other keys: those of the model, optim.decay_steps,
/// optim.cooldown_steps, checkpoint.dir. Idempotent.
void resolve(RunConfig& config, Origins& origins);
/// The same but for the model.
void fill_in_derived_keys(RunConfig& config);

/// Checks between keys that do not need the number of ranks.
/// @throws UserError (exit code config) naming key, origin and the nearest values that work
void validate(const RunConfig& config, const Origins& origins = {});

/// Checks that the batch sizes fit dp data-parallel ranks; call it when the mesh is resolved.
/// @throws UserError (exit code config) with the nearest values that work
void validate_batch(const RunConfig& config, std::int64_t dp, const Origins& origins = {});

/// Checks that there is something to train on, which a plan does without.
/// @throws UserError (exit code config)
void validate_data(const RunConfig& config, const Origins& origins = {});

/// `message` after the place of the first key in it that a person wrote: "run.toml:7:1:
/// model.heads = ...".
std::string located(const std::string& message, const Origins& origins);

/// The effective configuration as TOML that parses back to the same; with the origin of every value
/// as a comment.
std::string print_run_config(const EffectiveConfig& effective);

/// What a configuration says of itself that a run has saved, to be printed by print_run_config():
/// the values that are as if nobody had written them are defaults, or derived. All others come from
/// `place`. So a print of it that is used as a run file, and changed, derives them anew.
EffectiveConfig explained(const RunConfig& saved, const std::string& place);

/// The same without comments: what a checkpoint and config.toml keep. Equal configurations give
/// equal texts.
std::string to_toml(const RunConfig& config);

/// What a person may change when going on from a checkpoint.
enum class OnResume : std::uint8_t { free, needs_allowance, impossible };

/// One key whose value differs in meaning from the checkpoint's.
struct ConfigChange {
  std::string key;  ///< "optim.lr"
  std::string before;
  std::string after;
  OnResume rule = OnResume::free;
  /// Where both values are derived from the same other key: that key. Then the change is free.
  std::string follows = {};
  std::string str() const;  ///< "optim.lr: 0.0006 -> 0.0003"
};

/// Differences in the order of the table of keys. Keys without effect on either side are
/// left out, and so are checkpoint.resume and log.progress, which are about one start alone. A key
/// whose value is on both sides the one that it gets where nobody writes one changes freely: a
/// longer train.steps stretches optim.decay_steps.
std::vector<ConfigChange> config_difference(const RunConfig& before, const RunConfig& after);
std::vector<ConfigChange> config_difference(std::string_view before_toml, const RunConfig& after);

/// Refuses changes that would change the meaning of the run, unless allowed by name
/// (--allow-change=optim.lr).
/// @throws UserError (exit code config) listing each refused change and what would allow it; also
/// when `allowed` names
///         an unknown key or one that can never change
void refuse_changes(std::span<const ConfigChange> changes, std::span<const std::string> allowed);

/// All keys with default, unit and meaning, as plain text for --help (a meaning is one long line)
/// and as the tables of docs/run-file.md.
std::string run_file_help();
/// The same of a table ("optim", "[optim]"), of a key ("optim.lr", "lr"), or of what other trainers
/// call one ("learning_rate"); "" where nothing is called `part`.
std::string run_file_help(const std::string& part);
std::string run_file_markdown();

/// A small file that a run file names and that changes what the run computes, as it was when it was
/// read. Token files are none: they stay where they are, and a digest tells whether they have
/// changed.
struct RunInput {
  std::string key;    ///< that names it: "mesh.schedule"
  std::string value;  ///< as it names it
  /// the first is the one that the key takes; the others lie beside it; with absolute paths
  std::vector<FileBytes> files;
};

}  // namespace fourfold::runfile
