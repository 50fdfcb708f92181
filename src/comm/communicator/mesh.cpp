// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/mesh.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace fourfold::comm {

Mesh::Mesh(MeshShape shape, Communicator& world)
    : shape_(shape), coordinate_(coordinate_of(shape, world.rank())), world_(&world) {
  FOURFOLD_EXPECT(shape.ranks() == world.size());
  std::vector<int> members;
  for (const Axis axis : all_axes) {
    members.clear();
    for (int position = 0; position < shape[axis]; ++position) {
      MeshCoordinate other = coordinate_;
      other[axis] = position;
      members.push_back(static_cast<int>(rank_of(shape, other)));
    }
    axes_[static_cast<std::size_t>(axis)] = world.subgroup(members, std::string(comm::name(axis)));
  }
  members.clear();
  for (int dp = 0; dp < shape.dp; ++dp) {
    for (int cp = 0; cp < shape.cp; ++cp) {
      MeshCoordinate other = coordinate_;
      other.dp = dp;
      other.cp = cp;
      members.push_back(static_cast<int>(rank_of(shape, other)));
    }
  }
  data_plane_ = world.subgroup(members, "dp*cp");
}

namespace {

struct AxisRow {
  Axis axis;
  int MeshShape::*degree;
  int MeshCoordinate::*position;
};
constexpr std::array rows{
    AxisRow{Axis::pp, &MeshShape::pp, &MeshCoordinate::pp},
    AxisRow{Axis::dp, &MeshShape::dp, &MeshCoordinate::dp},
    AxisRow{Axis::cp, &MeshShape::cp, &MeshCoordinate::cp},
    AxisRow{Axis::tp, &MeshShape::tp, &MeshCoordinate::tp},
};
static_assert(std::ranges::equal(rows, all_axes, {}, &AxisRow::axis), "each axis has its row");

constexpr const AxisRow& row(Axis axis) noexcept {
  return rows[static_cast<std::size_t>(axis)];
}

/// All but dp, which may be open.
std::vector<Axis> model_axes() {
  std::vector<Axis> axes;
  std::ranges::copy_if(all_axes, std::back_inserter(axes),
                       [](Axis axis) { return axis != Axis::dp; });
  return axes;
}

/// Product of the axes other than dp. @throws UserError when it has no meaning
std::int64_t model_ranks(const MeshShape& shape) {
  const std::vector<Axis> axes = model_axes();
  std::int64_t product = 1;
  for (const Axis axis : axes) {
    if (shape[axis] < 1) {
      throw UserError(ExitCode::config,
                      format_message("mesh.{} = {} is not a degree (every axis has at least one "
                                     "position); use 1 to leave the axis out",
                                     name(axis), shape[axis]));
    }
    product *= shape[axis];
    if (product > std::numeric_limits<int>::max()) {
      throw UserError(
          ExitCode::config,
          format_message("{} is more ranks than can be counted (at most {}); use smaller degrees",
                         product_text(shape, axes), std::numeric_limits<int>::max()));
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

std::string axis_names() {
  std::string text;
  for (const Axis axis : all_axes) {
    text += axis == all_axes.front() ? "" : axis == all_axes.back() ? " and " : ", ";
    text += name(axis);
  }
  return text;
}

int& MeshShape::operator[](Axis axis) noexcept {
  return this->*row(axis).degree;
}

int MeshShape::operator[](Axis axis) const noexcept {
  return this->*row(axis).degree;
}

std::int64_t MeshShape::ranks() const noexcept {
  std::int64_t product = 1;
  for (const Axis axis : all_axes) {
    product *= (*this)[axis];
  }
  return product;
}

std::string MeshShape::str() const {
  std::string text;
  for (const Axis axis : all_axes) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", name(axis), (*this)[axis]);
  }
  return text;
}

std::string product_text(const MeshShape& shape, std::span<const Axis> axes) {
  std::string text;
  for (const Axis axis : axes) {
    text += fmt::format("{}mesh.{} = {}", text.empty() ? "" : " x ", name(axis), shape[axis]);
  }
  return text;
}

int& MeshCoordinate::operator[](Axis axis) noexcept {
  return this->*row(axis).position;
}

int MeshCoordinate::operator[](Axis axis) const noexcept {
  return this->*row(axis).position;
}

MeshCoordinate coordinate_of(const MeshShape& shape, std::int64_t rank) {
  FOURFOLD_EXPECT(rank >= 0 && rank < shape.ranks());
  MeshCoordinate coordinate;
  for (std::size_t i = axis_count; i-- > 0;) {
    const Axis axis = all_axes[i];
    coordinate[axis] = static_cast<int>(rank % shape[axis]);
    rank /= shape[axis];
  }
  return coordinate;
}

std::int64_t rank_of(const MeshShape& shape, const MeshCoordinate& coordinate) {
  std::int64_t rank = 0;
  for (const Axis axis : all_axes) {
    FOURFOLD_EXPECT(coordinate[axis] >= 0 && coordinate[axis] < shape[axis]);
    rank = rank * shape[axis] + coordinate[axis];
  }
  return rank;
}

MeshShape resolve_mesh(MeshShape wanted, std::int64_t ranks, std::int64_t shares) {
  FOURFOLD_EXPECT(ranks >= 1 && shares >= 0);
  MeshShape shape = wanted;
  const std::int64_t each = model_ranks(shape);
  if (wanted.dp < 0) {
    throw UserError(ExitCode::config,
                    format_message("mesh.dp = {} is not a degree (it counts the copies of the "
                                   "model); use \"auto\" or a number from 1",
                                   wanted.dp));
  }
  if (wanted.dp == 0) {
    if (ranks % each != 0) {
      throw UserError(ExitCode::config,
                      format_message("the mesh does not fit {} ranks ({} makes {} ranks per copy "
                                     "of the model, which does not divide {}); {}",
                                     ranks, product_text(wanted, model_axes()), each, ranks,
                                     way_out(each, ranks, shares)));
    }
    shape.dp = static_cast<int>(ranks / each);
  } else if (each * wanted.dp != ranks) {
    throw UserError(
        ExitCode::config,
        format_message("the mesh does not fit {} ranks ({} is {}); {}", ranks, product_text(wanted),
                       each * wanted.dp, way_out(each, ranks, shares)));
  }
  FOURFOLD_ENSURE(shape.ranks() == ranks);
  return shape;
}

}  // namespace fourfold::comm
