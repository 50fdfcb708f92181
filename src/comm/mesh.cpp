// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/mesh.hpp>

#include <fmt/format.h>

#include <limits>
#include <vector>

namespace fourfold::comm {
namespace {

constexpr std::array<Axis, axis_count> all_axes{Axis::pp, Axis::dp, Axis::cp, Axis::tp};

/// Product of the axes other than dp. @throws UserError when it has no meaning
std::int64_t model_ranks(const MeshShape& shape) {
  std::int64_t product = 1;
  for (const Axis axis : all_axes) {
    const int degree = axis == Axis::dp ? 1 : shape.degree(axis);
    if (degree < 1) {
      throw UserError(ExitCode::config,
                      format_message("mesh.{} = {} is not a degree (every axis has at least one "
                                     "position); use 1 to leave the axis out",
                                     name(axis), degree));
    }
    product *= degree;
    if (product > std::numeric_limits<int>::max()) {
      throw UserError(
          ExitCode::config,
          format_message("mesh.pp = {} x mesh.cp = {} x mesh.tp = {} is more ranks than "
                         "can be counted (at most {}); use smaller degrees",
                         shape.pp, shape.cp, shape.tp, std::numeric_limits<int>::max()));
    }
  }
  return product;
}

bool divides(std::int64_t dp, std::int64_t shares) {
  return shares == 0 || shares % dp == 0;
}

/// What to do when `ranks` do not fit: the dp for this number, or the nearest numbers that work.
std::string way_out(std::int64_t each, std::int64_t ranks, std::int64_t shares) {
  std::int64_t below = ranks / each;
  if (below >= 1 && ranks % each == 0 && divides(below, shares)) {
    return fmt::format("use mesh.dp = {} (or \"auto\")", below);
  }
  if (below == 0) {
    return fmt::format("start at least {} ranks (dp = 1), or use smaller degrees", each);
  }
  std::int64_t above = below + 1;
  while (!divides(below, shares)) {
    --below;
  }
  while (above < shares && !divides(above, shares)) {
    ++above;
  }
  const std::string more = divides(above, shares)
                               ? fmt::format(" or {} ranks (dp = {})", above * each, above)
                               : std::string();
  return fmt::format("start {} ranks (dp = {}){}, or change the degrees", below * each, below,
                     more);
}

}  // namespace

std::string_view name(Axis axis) noexcept {
  constexpr std::array<std::string_view, axis_count> names{"pp", "dp", "cp", "tp"};
  return names[static_cast<std::size_t>(axis)];
}

int MeshShape::degree(Axis axis) const noexcept {
  return std::array{pp, dp, cp, tp}[static_cast<std::size_t>(axis)];
}

std::int64_t MeshShape::ranks() const noexcept {
  return std::int64_t{pp} * dp * cp * tp;
}

std::string MeshShape::str() const {
  return fmt::format("pp{} dp{} cp{} tp{}", pp, dp, cp, tp);
}

int MeshCoordinate::on(Axis axis) const noexcept {
  return std::array{pp, dp, cp, tp}[static_cast<std::size_t>(axis)];
}

MeshCoordinate coordinate_of(const MeshShape& shape, std::int64_t rank) {
  FOURFOLD_EXPECT(rank >= 0 && rank < shape.ranks());
  MeshCoordinate coordinate;
  coordinate.tp = static_cast<int>(rank % shape.tp);
  rank /= shape.tp;
  coordinate.cp = static_cast<int>(rank % shape.cp);
  rank /= shape.cp;
  coordinate.dp = static_cast<int>(rank % shape.dp);
  coordinate.pp = static_cast<int>(rank / shape.dp);
  return coordinate;
}

std::int64_t rank_of(const MeshShape& shape, const MeshCoordinate& coordinate) {
  for ([[maybe_unused]] const Axis axis : all_axes) {
    FOURFOLD_EXPECT(coordinate.on(axis) >= 0 && coordinate.on(axis) < shape.degree(axis));
  }
  return ((std::int64_t{coordinate.pp} * shape.dp + coordinate.dp) * shape.cp + coordinate.cp) *
             shape.tp +
         coordinate.tp;
}

MeshShape resolve_mesh(MeshShape wanted, std::int64_t ranks, std::int64_t shares) {
  FOURFOLD_EXPECT(ranks >= 1 && shares >= 0);
  const auto [pp, dp, cp, tp] = wanted;
  MeshShape shape = wanted;
  const std::int64_t each = model_ranks(shape);
  if (dp < 0) {
    throw UserError(
        ExitCode::config,
        format_message("mesh.dp = {} is not a degree (it counts the copies of the model); "
                       "use \"auto\" or a number from 1",
                       dp));
  }
  if (dp == 0) {
    if (ranks % each != 0) {
      throw UserError(
          ExitCode::config,
          format_message(
              "the mesh does not fit {} ranks (mesh.pp = {} x mesh.cp = {} x mesh.tp = {} "
              "makes {} ranks per copy of the model, which does not divide {}); {}",
              ranks, pp, cp, tp, each, ranks, way_out(each, ranks, shares)));
    }
    shape.dp = static_cast<int>(ranks / each);
  } else if (each * dp != ranks) {
    throw UserError(
        ExitCode::config,
        format_message(
            "the mesh does not fit {} ranks (mesh.pp = {} x mesh.dp = {} x mesh.cp = {} x "
            "mesh.tp = {} is {}); {}",
            ranks, pp, dp, cp, tp, each * dp, way_out(each, ranks, shares)));
  }
  FOURFOLD_ENSURE(shape.ranks() == ranks);
  return shape;
}

Mesh::Mesh(MeshShape shape, Communicator& world)
    : shape_(shape), coordinate_(coordinate_of(shape, world.rank())), world_(&world) {
  FOURFOLD_EXPECT(shape.ranks() == world.size());
  std::vector<int> members;
  for (const Axis axis : all_axes) {
    members.clear();
    for (int position = 0; position < shape.degree(axis); ++position) {
      MeshCoordinate other = coordinate_;
      (axis == Axis::pp   ? other.pp
       : axis == Axis::dp ? other.dp
       : axis == Axis::cp ? other.cp
                          : other.tp) = position;
      members.push_back(static_cast<int>(rank_of(shape, other)));
    }
    axes_[static_cast<std::size_t>(axis)] = world.subgroup(members, std::string(comm::name(axis)));
  }
  members.clear();
  for (int dp = 0; dp < shape.dp; ++dp) {
    for (int cp = 0; cp < shape.cp; ++cp) {
      members.push_back(static_cast<int>(rank_of(shape, {coordinate_.pp, dp, cp, coordinate_.tp})));
    }
  }
  data_plane_ = world.subgroup(members, "dp*cp");
}

}  // namespace fourfold::comm
