// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fourfold::io {

/// "1.10.8": of the HDF5 library that this process runs with, which may be another than it was
/// built with.
std::string hdf5_version();

}  // namespace fourfold::io
