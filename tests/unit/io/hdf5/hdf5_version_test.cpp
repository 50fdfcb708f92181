// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/hdf5_version.hpp>

#include <catch2/catch_test_macros.hpp>

TEST_CASE("the HDF5 in use has a version", "[hdf5]") {
  CHECK(fourfold::io::hdf5_version().starts_with("1."));
}
