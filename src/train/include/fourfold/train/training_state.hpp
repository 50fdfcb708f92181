// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/save_request.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/schedule/split_layers.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/loss_scale.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/step_runner.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// The integers that are state besides the tensors. Random numbers and the data order are closed
/// forms of these and the run file's seed.
struct Progress {
  std::int64_t step = 0;              ///< completed updates, with those that overflowed
  std::int64_t consumed_samples = 0;  ///< the next step begins with this sample number
  std::int64_t consumed_tokens = 0;   ///< valid targets trained on
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// How a checkpoint sees one rank's training state: for every parameter the f32 master weight and
/// the moments of the optimizer, and of the outer one if there is one, and for matrices whose
/// gradients travel compressed what that has left out, under the parameter's logical name.
///
/// What lies in memory that only a device reaches has an image in pinned memory of the host, which
/// is what pieces() and wanted() show; fetch() and put() keep the two alike. All else they show
/// where it is: they borrow the memory of the share, of the optimizers and of StepRunner. There is
/// one image: who reads it is done before it is fetched again.
class TrainingState {
 public:
  /// The state of one rank of a mesh, as state_layouts() has it; layouts() are of the whole model.
  /// @param share  of this rank
  /// @param errors, outer  StepRunner::error_pieces() and OuterOptimizer::moments(): what a
  ///   checkpoint may be without; it begins at zero then
  TrainingState(const ResolvedRun& run, const parallel::ParameterShard& share,
                const Optimizer& optimizer, const comm::Mesh& mesh,
                const std::optional<ErrorPieces>& errors = {}, std::span<const Moment> outer = {});
  /// The weights alone, for evaluation and sampling: `ranks` ranks hold all of them.
  TrainingState(const model::Parameters& parameters, int ranks);

  const std::vector<io::TensorLayout>& layouts() const noexcept { return layouts_; }
  const std::vector<io::Piece>& pieces() const noexcept { return pieces_; }
  const std::vector<io::WantedBox>& wanted() const noexcept { return wanted_; }

  /// Brings the state to where pieces() show it. Blocks the host until it is there.
  void fetch(device::StreamRef stream);
  /// Begins to, after what is on `stream`, on a stream of its own: what comes on `stream` then
  /// goes on beside it, and waits for the mark before it changes the state. Does not block the
  /// host.
  /// @pre is_imaged()
  const device::Event& begin_fetch(device::StreamRef stream);
  /// Whether what was begun is there. Any thread may ask.
  bool has_arrived() const { return fetched_.has_happened(); }
  /// Whether all of the state has an image.
  bool is_imaged() const noexcept;
  /// Brings what has come to where wanted() shows it to where it belongs.
  void put(device::StreamRef stream);
  /// Bytes of images.
  std::size_t image_bytes() const noexcept { return image_.bytes(); }

 private:
  void hold_errors(const ErrorPieces& errors, const comm::Mesh& mesh);
  /// @param saves  this rank, else another
  void hold(const model::ParameterSpec& spec, const Box& box, io::TensorState state,
            TensorView view, bool saves, bool or_zeros = false);
  /// @return the stream that fetches
  device::StreamRef fetch_after(device::StreamRef stream);
  /// Takes the memory of images, and shows them instead of what they are of.
  void make_images();

  std::vector<io::TensorLayout> layouts_;
  std::vector<io::Piece> pieces_;
  std::vector<io::WantedBox> wanted_;
  /// By place in wanted_: the memory of the device that its view is an image of; absent: it is
  /// none.
  std::vector<TensorView> imaged_;
  device::Buffer image_;
  device::Stream fetching_;
  device::Event produced_;
  device::Event fetched_;
};

/// To and from the scalars of a checkpoint. A loss scale is there with f16 only; its count of
/// skipped steps wherever it is not zero. `config_toml` is the run file as it was used; `data` what
/// it was trained on, because the order of samples depends on that.
io::CheckpointScalars to_scalars(const Progress& progress, const LossScale& loss_scale,
                                 std::string config_toml, const DataFacts& data);
/// @throws UserError (data_corrupt) naming what is missing or impossible
Progress progress_of(const io::Checkpoint& checkpoint);
/// @param fresh  of a new run: for what the checkpoint does not have
/// @throws UserError (data_corrupt) for what is impossible
LossScaleState loss_scale_of(const io::Checkpoint& checkpoint, const LossScaleState& fresh);

/// The name under which a checkpoint keeps the run file.
using runfile::config_text_name;

}  // namespace fourfold::train
