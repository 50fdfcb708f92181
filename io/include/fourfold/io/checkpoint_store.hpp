// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Checkpoints: sharded HDF5 files that restart on any mesh. The format is
/// docs/checkpoint-format.md.
///
///   CheckpointStore store("runs/gpt2/checkpoints", {.keep_last = 3});
///   store.save({.step = 500, .mesh = mesh.shape(), .scalars = .., .tensors = layouts, .pieces =
///   mine}, world);
///   ...
///   if (auto checkpoint = store.restore(wanted, world)) { step = checkpoint->step(); }
///
/// All collective calls block the host; ranks meet on the communicator that is passed, in host
/// memory. Call them at a step boundary.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/digest.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// The few numbers and texts that are state besides the tensors: "consumed_samples",
/// "loss_scale", "config.toml", ... Names obey the rule of TensorId. Texts may hold anything.
struct CheckpointScalars {
  std::map<std::string, std::int64_t, std::less<>> integers;
  std::map<std::string, double, std::less<>> reals;
  std::map<std::string, std::string, std::less<>> texts;

  /// @throws UserError (data_corrupt) naming the entry when a checkpoint lacks it
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  /// Compares bits: a NaN equals itself.
  friend bool operator==(const CheckpointScalars& a, const CheckpointScalars& b) noexcept;
};

/// What this rank holds of one tensor: one of the layout's boxes of which it is a holder, dense, in
/// host memory. Borrowed for the call.
struct Piece {
  TensorId id;
  Box box;
  ConstTensorView data;
};

/// Everything that goes into one checkpoint. step, mesh, scalars and tensors agree on all ranks;
/// pieces are this rank's own, one for each held box whose holders it is among, in any order.
struct SaveRequest {
  std::int64_t step = 0;
  comm::MeshShape mesh;  ///< recorded for people and tools; a restart does not depend on it
  CheckpointScalars scalars;
  std::span<const TensorLayout> tensors;
  std::span<const Piece> pieces;
};

struct SaveReport {
  std::filesystem::path path;      ///< of the committed step directory
  std::int64_t payload_bytes = 0;  ///< of all ranks
  double seconds = 0;              ///< this rank's wall time
};

/// A logical tensor as a checkpoint has it.
struct StoredTensor {
  TensorId id;
  DType dtype = DType::f32;
  Shape shape;
  Digest digest;
};

struct CheckpointContents;
class DirectoryLease;

/// One committed step whose manifest and index have been read and checked. Immutable; cheap to
/// copy; the same on all ranks.
class Checkpoint {
 public:
  explicit Checkpoint(std::shared_ptr<const CheckpointContents> contents);

  std::int64_t step() const noexcept;
  const std::filesystem::path& path() const noexcept;
  /// 32 hexadecimal digits that depend on the step, the integers, the reals and the tensors, so
  /// on all that a run computes on with, and not on mesh or texts: equal state, equal identity.
  const std::string& identity() const noexcept;
  const comm::MeshShape& mesh() const noexcept;
  const CheckpointScalars& scalars() const noexcept;
  /// Ordered by id.
  std::span<const StoredTensor> tensors() const noexcept;
  const StoredTensor* find(const TensorId& id) const noexcept;
  const CheckpointContents& contents() const noexcept { return *contents_; }

 private:
  std::shared_ptr<const CheckpointContents> contents_;
};

/// A box that this rank wants and where to put it. data is host memory, dense, of the tensor's
/// dtype; shape is the shape of the whole logical tensor as the program has it.
struct WantedBox {
  TensorId id;
  Shape shape;
  Box box;
  TensorView data;
  bool or_zeros = false;  ///< a checkpoint without the tensor fills it with zeros
};

/// Told of bytes of a piece or a wanted box that a call is done with for now: memory that is a
/// window on a file can let go of them.
using DoneWith = std::function<void(const void* begin, std::size_t bytes)>;

/// When ranks that want the same box share the reading of it: each reads a part from the file
/// system, checks it, and sends it to the others. What is stored is read about once then (chunks
/// at the borders of parts twice), and crosses the network instead. Agrees on all ranks.
struct ReadSharing {
  /// How what is wanted lies on the ranks: each wants the boxes that it holds, and maybe others.
  std::span<const TensorLayout> layouts;
  int from_holders = 0;  ///< so many holders, or more, share; 0: none do
  /// So much at least is a rank's part, if there is as much: fewer ranks read then.
  std::int64_t smallest_part_bytes = std::int64_t{8} << 20;
};

struct StoreOptions {
  /// Steps that are kept of the one just committed and those before it, the newest; older ones are
  /// removed. Later ones, which another run or this one before it went back has saved, neither
  /// count nor are removed. 0 keeps all.
  int keep_last = 0;
  /// Of the older ones these are kept: multiples of keep_every_steps, and the keep_best ones of the
  /// lowest validation loss (retention.hpp). 0: none for that.
  std::int64_t keep_every_steps = 0;
  int keep_best = 0;
  PlanOptions plan = {};
  /// ReadSharing::from_holders of restore().
  int share_reads_from = 0;
  DoneWith done_with = {};
  /// Asked by rank 0 before a step is published; set by CheckpointStore::take_lease().
  std::shared_ptr<const DirectoryLease> lease = {};
  /// Steps that restore() has found damaged, the same on all ranks: a save of one of them sets it
  /// aside, even if other ranks than the one that could not read it find it whole. Made by the
  /// store.
  std::shared_ptr<std::set<std::int64_t>> damaged_steps = {};

  /// Local. @throws as DirectoryLease::check(), where there is a lease
  void check_lease() const;
};

/// The checkpoints of one run: a directory with one step-NNNNNNNNN folder per committed step.
/// A folder of that name is complete; steps are never overwritten.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path directory, StoreOptions options = {});

  const std::filesystem::path& directory() const noexcept { return directory_; }
  const StoreOptions& options() const noexcept { return options_; }
  const DoneWith& done_with() const noexcept { return options_.done_with; }

  /// Writes and commits one step. Collective. Replicas are compared first and written once, split
  /// among their holders. When this returns, on all ranks, the step is on stable storage.
  /// @throws on all ranks alike, with earlier steps untouched and nothing left behind:
  ///   UserError (cannot_write) with path, reason, free space and what to do, when anything
  ///   cannot be written or the step exists already with other contents;
  ///   SystemError (data_corrupt) naming tensor and ranks when replicas differ;
  ///   SystemError (internal) when ranks disagree about the plan.
  /// A step that exists already with the same identity is left as it is, with the texts it has, and
  /// counts as saved. Steps later than the one saved stay and are named in a warning.
  SaveReport save(const SaveRequest& request, comm::Communicator& communicator);

  /// Tries whether a save could begin: makes the directory and writes, syncs and removes a small
  /// file in it. Collective; rank 0 tries. @throws UserError on all ranks: cannot_write; config
  /// when the directory is itself a step
  void check_writable(comm::Communicator& communicator) const;

  /// Keeps other jobs from saving here while this store lives (directory_lease.hpp). Rank 0 takes
  /// the lease for all. Collective; may wait for `silence`.
  /// @throws on all ranks alike as DirectoryLease
  void take_lease(comm::Communicator& communicator);

  /// Committed steps, ascending. Local; reads the directory only. A missing directory has none.
  std::vector<std::int64_t> list_steps() const;
  /// The newest of them; -1 when there is none. Collective; rank 0 looks: when another gets to it,
  /// the directory may be in the making. @throws on all ranks alike when it cannot be read
  std::int64_t newest_step(comm::Communicator& communicator) const;
  /// Their folders, in the same order.
  std::vector<std::filesystem::path> step_folders() const;

  /// The newest step below `before` whose manifest and index hold and whose files have their exact
  /// names and sizes. Collective; rank 0 looks and the others learn. LATEST is not consulted. Each
  /// newer step that is passed over is named in a warning with the reason.
  std::optional<Checkpoint> find_newest_valid(
      comm::Communicator& communicator,
      std::int64_t before = std::numeric_limits<std::int64_t>::max()) const;

  /// find_newest_valid and load, falling back to the next older step, on all ranks together and
  /// with a warning that names what is damaged, until one loads whole.
  /// @param layouts  of `wanted`, for ReadSharing; empty: each rank reads all it wants
  /// @param examine  called on each rank with every checkpoint that is about to be loaded; it may
  ///   refuse one by throwing, on all ranks alike
  /// @return nothing when there is no step at all (then `wanted` is untouched)
  /// @throws UserError: config, listing the differences by tensor, when the checkpoint is of
  ///   another model; data_corrupt when steps exist and none is intact
  std::optional<Checkpoint> restore(std::span<const WantedBox> wanted,
                                    comm::Communicator& communicator,
                                    const std::function<void(const Checkpoint&)>& examine = {},
                                    std::span<const TensorLayout> layouts = {}) const;

  /// Removes what dead jobs left: temporary folders of unfinished saves and folders half deleted.
  /// Collective; call once at the start of a job that will save here, which has the lease.
  void sweep_leftovers(comm::Communicator& communicator) const;

 private:
  std::filesystem::path directory_;
  StoreOptions options_;
};

/// Opens one step folder, wherever it is. Collective; rank 0 reads and the others learn.
/// @throws UserError: config when the folder does not exist or holds no checkpoint; data_corrupt
///   naming file and reason when it does not hold together
Checkpoint open_checkpoint(const std::filesystem::path& step_directory,
                           comm::Communicator& communicator);

/// Finds the checkpoint a user names: a step folder, or a folder of steps, of which the newest
/// valid one is taken. Collective. @throws as open_checkpoint
Checkpoint find_checkpoint(const std::filesystem::path& folder, comm::Communicator& communicator);

/// What keeps `wanted` from being filled from `checkpoint`: missing tensors (but for or_zeros),
/// other shapes or dtypes, one line each, by name. Local. Tensors of the checkpoint that nobody
/// wants are fine.
std::vector<std::string> differences(const Checkpoint& checkpoint,
                                     std::span<const WantedBox> wanted);

struct LoadReport {
  /// What is damaged, one line each with file, tensor and reason, of all ranks. Empty: all is well.
  std::vector<std::string> damage;
  std::int64_t bytes_read = 0;  ///< by this rank
  bool intact() const noexcept { return damage.empty(); }
};

/// Fills every wanted box, whatever boxes were saved. Collective: the ranks want what they like,
/// and agree on whether all of them got it. Reads only the 4 MiB chunks that the boxes touch and
/// checks the CRC of each; what several ranks want, as `sharing` says. After damage the wanted
/// boxes hold anything.
/// @throws UserError (config) listing differences() when the checkpoint is of another model
LoadReport load(const Checkpoint& checkpoint, std::span<const WantedBox> wanted,
                comm::Communicator& communicator, const DoneWith& done_with = {},
                const ReadSharing& sharing = {});

/// Reads everything, each byte once, shared among the ranks, and checks every checksum and digest.
/// Collective. @return what is damaged, one line each; empty when all is well
/// @param on_read  told of bytes of payload files that this rank has read, a chunk at a time
std::vector<std::string> verify(const Checkpoint& checkpoint, comm::Communicator& communicator,
                                const std::function<void(std::int64_t bytes)>& on_read = {});

}  // namespace fourfold::io
