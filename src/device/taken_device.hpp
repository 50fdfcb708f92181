// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::device {

/// The device that this process has taken, or will have bound its threads to.
int taken_device() noexcept;

}  // namespace fourfold::device
