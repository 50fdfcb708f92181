// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::comm {

/// The axes of the mesh, slowest first: neighbours on tp are neighbours in rank, so they share a
/// node. Whoever does the same for each axis walks all_axes; a new one is a member here, named, of
/// MeshShape and of MeshCoordinate, and a row of the table in mesh.cpp.
enum class Axis : std::uint8_t { pp, dp, cp, tp };
constexpr auto names_of(Axis /*any*/) {
  using enum Axis;
  return std::to_array<Named<Axis>>({{pp, "pp"}, {dp, "dp"}, {cp, "cp"}, {tp, "tp"}});
}
using fourfold::name;
inline constexpr auto all_axes = values_in(named_values<Axis>);
inline constexpr std::size_t axis_count = all_axes.size();
/// "pp, dp, cp and tp"
std::string axis_names();

/// Degrees of the axes. A value; knows nothing of ranks that run.
struct MeshShape {
  int pp = 1;
  int dp = 1;
  int cp = 1;
  int tp = 1;

  int& operator[](Axis axis) noexcept;
  int operator[](Axis axis) const noexcept;
  /// Product of the degrees.
  std::int64_t ranks() const noexcept;
  /// Those of Mesh::data_plane(), which hold the same parameters.
  int data_plane_ranks() const noexcept { return dp * cp; }
  std::string str() const;  ///< "pp1 dp4 cp1 tp2"
  friend bool operator==(const MeshShape&, const MeshShape&) = default;
};

/// As messages about run files have it: "mesh.pp = 2 x mesh.tp = 4".
std::string product_text(const MeshShape& shape, std::span<const Axis> axes = all_axes);

/// Position of a rank on each axis.
struct MeshCoordinate {
  int pp = 0;
  int dp = 0;
  int cp = 0;
  int tp = 0;

  int& operator[](Axis axis) noexcept;
  int operator[](Axis axis) const noexcept;
  friend bool operator==(const MeshCoordinate&, const MeshCoordinate&) = default;
};

/// Rank = ((pp * DP + dp) * CP + cp) * TP + tp, and back. @pre 0 <= rank < shape.ranks()
MeshCoordinate coordinate_of(const MeshShape& shape, std::int64_t rank);
std::int64_t rank_of(const MeshShape& shape, const MeshCoordinate& coordinate);

/// Fills in "auto": dp = ranks / (the product of the others), and checks that the product is
/// `ranks`.
/// @param wanted  wanted.dp == 0 means auto
/// @param shares  what the copies of the model will share evenly (micro-batches of a step): numbers
///   of ranks that are advised divide it. It is not checked here; 0: any will do
/// @throws UserError (exit code config) with every number of the product and the nearest degree
///   that works
MeshShape resolve_mesh(MeshShape wanted, std::int64_t ranks, std::int64_t shares = 0);

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
