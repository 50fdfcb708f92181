// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The cores that this process may use, and short work that is shared among them. Kernels have
/// threads of their own (OMP_NUM_THREADS).
#pragma once

#include <cstdint>
#include <functional>

namespace fourfold {

/// In the affinity mask of the calling thread, which a batch system or a launcher gives; at
/// least 1.
int cores_allowed();

/// Calls work(begin, end) for parts of 0 to `count` that together are all of it, in threads of its
/// own and in this one, and comes back when all are done. Where threads cannot be made this one
/// does the rest.
/// @param least  of a part, below which another thread is not worth its start
/// @param work  from several threads at once; does not throw
void share_among_cores(std::int64_t count, std::int64_t least,
                       const std::function<void(std::int64_t begin, std::int64_t end)>& work);

}  // namespace fourfold
