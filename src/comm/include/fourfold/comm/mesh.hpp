// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh_shape.hpp>

#include <array>
#include <memory>

namespace fourfold::comm {

/// The mesh of a run: one world communicator split along the axes, built in one place in one fixed
/// order. Owns its communicators; destroy it before the transport's runtime. Move-only.
class Mesh {
 public:
  /// Collective over `world`, which is borrowed for the mesh's lifetime. @pre shape.ranks() ==
  /// world.size()
  Mesh(MeshShape shape, Communicator& world);

  const MeshShape& shape() const noexcept { return shape_; }
  const MeshCoordinate& coordinate() const noexcept { return coordinate_; }
  Communicator& world() const noexcept { return *world_; }
  /// The ranks that differ from this one only on `axis`, ordered by their position on it.
  Communicator& axis(Axis axis) const noexcept { return *axes_[static_cast<std::size_t>(axis)]; }
  /// The dp x cp plane: where gradients of every parameter are summed and ZeRO shards live (cp
  /// fastest).
  Communicator& data_plane() const noexcept { return *data_plane_; }

 private:
  MeshShape shape_;
  MeshCoordinate coordinate_;
  Communicator* world_;
  std::array<std::unique_ptr<Communicator>, axis_count> axes_;
  std::unique_ptr<Communicator> data_plane_;
};

}  // namespace fourfold::comm
