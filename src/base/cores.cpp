// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/cores.hpp>

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace fourfold {

int cores_allowed() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? std::max(CPU_COUNT(&cores), 1) : 1;
}

void share_among_cores(std::int64_t count, std::int64_t least,
                       const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  const std::int64_t parts = std::clamp<std::int64_t>(count / least, 1, cores_allowed());
  const auto begin_of = [&](std::int64_t part) {
    return count / parts * part + std::min(part, count % parts);
  };
  std::vector<std::jthread> others;
  std::int64_t given = 1;
  try {
    for (; given < parts; ++given) {
      others.emplace_back(work, begin_of(given), begin_of(given + 1));
    }
  } catch (const std::system_error&) {  // no more threads for this user
    work(begin_of(given), count);
  }
  work(0, begin_of(1));
}

}  // namespace fourfold
