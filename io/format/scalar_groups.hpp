// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// /scalars of index.h5 and of the first payload file. Include only from *.hdf5.cpp files.
#pragma once

#include "hdf5/table_reader.hpp"

#include <fourfold/io/checkpoint.hpp>

namespace fourfold::io {

void write_scalars(hid_t file, const CheckpointScalars& scalars);
/// What is missing or of another type is a defect of the reader.
CheckpointScalars read_scalars(TableReader& reader);

}  // namespace fourfold::io
