// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/hdf5.hpp"

#include <fourfold/io/hdf5_version.hpp>

#include <fmt/format.h>

namespace fourfold::io {

std::string hdf5_version() {
  const auto guard = h5::lock();
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  return H5get_libversion(&major, &minor, &release) < 0
             ? "unknown"
             : fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace fourfold::io
