// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mpi_world.hpp"

namespace fourfold::harness {

comm::Communicator& tested_world(comm::MpiRuntime& mpi) {
  return mpi.world();
}

}  // namespace fourfold::harness
