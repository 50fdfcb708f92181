// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::comm {

/// How ranks come by their devices and by the communicators between them.
struct DeviceOptions {
  /// Several ranks may take one device, and talk as if they were on different machines: slow, and
  /// no more than a test of the program.
  bool may_share = false;
  /// For all ranks to come together, whenever a communicator is made, and for each operation to be
  /// enqueued: longer than that is a hang.
  double deadline_s = 600;
  /// Ranks will enqueue messages in different orders (device::load_kernels_first): to warn where
  /// kernels are loaded late.
  bool needs_kernels_first = false;
};

}  // namespace fourfold::comm
