// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/arena.hpp>

namespace fourfold::harness {

/// An arena into which the host may look: what a test reads and writes by hand.
class SharedArena : public device::Arena {
 public:
  SharedArena() : Arena(Backing::shared) {}
};

}  // namespace fourfold::harness
