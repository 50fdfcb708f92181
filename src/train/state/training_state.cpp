// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/state_layouts.hpp>
#include <fourfold/train/training_state.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace fourfold::train {

namespace {

constexpr const char* loss_scale_name = "loss_scale";
constexpr const char* good_steps_name = "loss_scale_good_steps";
constexpr const char* skipped_steps_name = "skipped_steps";

/// Of the tensor-parallel ranks that hold the same part of a parameter, the first.
bool holds_first(const model::ParameterSpec& spec, const comm::Mesh& mesh) {
  const int tp = mesh.coordinate().tp;
  return parallel::tensor_shard(spec, mesh.shape().tp, tp).holders.begin == tp;
}

}  // namespace

TrainingState::TrainingState(const ResolvedRun& run, const parallel::ParameterShard& share,
                             const Optimizer& optimizer, const comm::Mesh& mesh,
                             const std::optional<ErrorPieces>& errors,
                             std::span<const Moment> outer)
    : layouts_(state_layouts(run, saved_tensors(run))) {
  for (const parallel::ParameterShard::Piece& piece : share.pieces()) {
    const model::ParameterSpec& spec = piece.parameter->spec;
    const bool saves = run.zero.shard_ranks == 1 || holds_first(spec, mesh);
    hold(spec, piece.box, io::TensorState::master, piece.master, saves);
    for (const Moment& state : optimizer.states_of(piece)) {
      hold(spec, piece.box, io::TensorState(state.name), state.flat, saves);
    }
    for (const Moment& moment : spec.is_trainable() ? outer : std::span<const Moment>()) {
      hold(spec, piece.box, io::TensorState(moment.name),
           moment.flat.rows(piece.state.begin, piece.state.count).reshape(piece.box.extent), saves,
           true);
    }
  }
  if (errors) {
    hold_errors(*errors, mesh);
  }
  make_images();
}

void TrainingState::hold_errors(const ErrorPieces& errors, const comm::Mesh& mesh) {
  for (const parallel::ErrorFeedback::Piece& piece : errors) {
    const model::ParameterSpec& spec = piece.parameter->spec;
    hold(spec, piece.box, error_feedback, piece.error, holds_first(spec, mesh), true);
  }
}

TrainingState::TrainingState(const model::Parameters& parameters, int ranks) {
  for (const model::Parameter& parameter : parameters) {
    std::vector<io::HeldBox> boxes{{parameter.box, io::RankSet::all(ranks)}};
    layouts_.push_back({{parameter.spec.name, io::TensorState::master},
                        DType::f32,
                        parameter.spec.shape,
                        std::move(boxes)});
    hold(parameter.spec, parameter.box, io::TensorState::master, parameter.master, true);
  }
  make_images();
}

void TrainingState::hold(const model::ParameterSpec& spec, const Box& box, io::TensorState state,
                         TensorView view, bool saves, bool or_zeros) {
  FOURFOLD_EXPECT(view.dtype() == DType::f32);
  const io::TensorId id{spec.name, state};
  if (saves) {
    pieces_.push_back({id, box, view});
  }
  wanted_.push_back({id, spec.shape, box, view, or_zeros});
}

void TrainingState::make_images() {
  std::size_t bytes = 0;
  for (const io::WantedBox& wanted : wanted_) {
    const TensorView& view = wanted.data;
    const bool is_imaged = view.bytes() > 0 && device::is_only_for_device(view.data());
    imaged_.push_back(is_imaged ? view : TensorView());
    bytes += is_imaged ? view.bytes() : 0;
  }
  image_ = device::Buffer(bytes, device::MemoryKind::pinned);
  std::map<const void*, void*> image_of;
  auto* next = static_cast<std::byte*>(image_.data());
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (const TensorView& on_device = imaged_[i]) {
      image_of[on_device.data()] = next;
      wanted_[i].data = {next, DType::f32, on_device.shape()};
      next += on_device.bytes();
    }
  }
  for (io::Piece& piece : pieces_) {
    if (const auto found = image_of.find(piece.data.data()); found != image_of.end()) {
      piece.data = {found->second, DType::f32, piece.data.shape()};
    }
  }
}

bool TrainingState::is_imaged() const noexcept {
  return device::has_own_memory &&
         std::ranges::count_if(imaged_, &TensorView::operator bool) ==
             std::ranges::count_if(
                 wanted_, [](const io::WantedBox& wanted) { return wanted.data.bytes() > 0; });
}

void TrainingState::fetch(device::StreamRef stream) {
  fetch_after(stream).synchronize();
}

const device::Event& TrainingState::begin_fetch(device::StreamRef stream) {
  FOURFOLD_EXPECT(is_imaged());
  fetched_.record(fetch_after(stream));
  return fetched_;
}

device::StreamRef TrainingState::fetch_after(device::StreamRef stream) {
  const device::Range range("fetch the state from the device");
  produced_.record(stream);
  produced_.wait(fetching_);
  for (std::size_t i = 0; i < imaged_.size(); ++i) {
    if (const TensorView& on_device = imaged_[i]) {
      device::copy(wanted_[i].data.data(), on_device.data(), on_device.bytes(), fetching_);
    }
  }
  return fetching_;
}

void TrainingState::put(device::StreamRef stream) {
  for (std::size_t i = 0; i < imaged_.size(); ++i) {
    if (const TensorView& on_device = imaged_[i]) {
      device::copy(on_device.data(), wanted_[i].data.data(), on_device.bytes(), stream);
    }
  }
  stream.synchronize();
}

io::CheckpointScalars to_scalars(const Progress& progress, const LossScale& loss_scale,
                                 std::string config_toml, const DataFacts& data) {
  io::CheckpointScalars scalars;
  scalars.integers = {{runfile::consumed_samples_name, progress.consumed_samples},
                      {runfile::consumed_tokens_name, progress.consumed_tokens}};
  const LossScaleState& state = loss_scale.state();
  if (loss_scale.in_use()) {
    scalars.integers.emplace(loss_scale_name, state.scale);
    scalars.integers.emplace(good_steps_name, state.good_steps);
  }
  if (loss_scale.in_use() || state.skipped_steps > 0) {
    scalars.integers.emplace(skipped_steps_name, state.skipped_steps);
  }
  scalars.texts = {{config_text_name, std::move(config_toml)},
                   {runfile::token_counts_name, data.token_counts},
                   {runfile::token_digests_name, data.digests},
                   {runfile::token_times_name, data.times},
                   {runfile::tokenizers_name, data.tokenizers}};
  return scalars;
}

Progress progress_of(const io::Checkpoint& checkpoint) {
  const Progress progress{
      .step = checkpoint.step(),
      .consumed_samples = checkpoint.scalars().integer(runfile::consumed_samples_name),
      .consumed_tokens = checkpoint.scalars().integer(runfile::consumed_tokens_name)};
  if (progress.consumed_samples < 0 || progress.consumed_tokens < 0) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{} has a negative position in the data (it is damaged); resume "
                                   "from another step",
                                   checkpoint.path().string()));
  }
  return progress;
}

LossScaleState loss_scale_of(const io::Checkpoint& checkpoint, const LossScaleState& fresh) {
  const auto& integers = checkpoint.scalars().integers;
  const auto saved = [&](const char* name, std::int64_t otherwise) {
    const auto found = integers.find(name);
    return found == integers.end() ? otherwise : found->second;
  };
  const LossScaleState state{.scale = saved(loss_scale_name, fresh.scale),
                             .good_steps = saved(good_steps_name, fresh.good_steps),
                             .skipped_steps = saved(skipped_steps_name, fresh.skipped_steps)};
  const bool is_power =
      state.scale > 0 && std::has_single_bit(static_cast<std::uint64_t>(state.scale));
  if (!is_power || state.scale > runfile::largest_loss_scale || state.good_steps < 0 ||
      state.skipped_steps < 0 || state.skipped_steps > checkpoint.step()) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message("{} has an impossible loss scale (scale {}, {} steps without and "
                       "{} with an overflow at step {}: it is damaged); resume from "
                       "another step",
                       checkpoint.path().string(), state.scale, state.good_steps,
                       state.skipped_steps, checkpoint.step()));
  }
  return state;
}

}  // namespace fourfold::train
