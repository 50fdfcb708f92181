// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold {

/// Seconds since 1970, of a clock that somebody may set: for what people read and other machines
/// compare.
double unix_time_s() noexcept;

/// Seconds of a clock that goes on evenly, from some moment on, the same for all processes of a
/// machine: for how long something takes.
double steady_time_s() noexcept;

}  // namespace fourfold
