// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What goes into a save and what comes out of it.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace fourfold::io {

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
  /// Whether the pieces are where they are said to be, on their way from a device; any thread may
  /// ask. Set on all ranks, or on none: they are there. For BackgroundSaver alone.
  std::function<bool()> has_arrived = {};
};

struct SaveReport {
  std::filesystem::path path;      ///< of the committed step directory
  std::int64_t payload_bytes = 0;  ///< of all ranks
  double seconds = 0;              ///< this rank's wall time
};

}  // namespace fourfold::io
