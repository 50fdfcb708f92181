// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/comm/mesh.hpp>

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

}  // namespace fourfold::comm
