// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_formats/array_schema.hpp"

#include "hdf5/hdf5.hpp"

#include <fourfold/base/contract.hpp>

namespace fourfold::io {

SparseImage make_array_image(std::span<const ArrayToWrite> arrays,
                             std::span<const ArrayFile::Attribute> attributes,
                             std::vector<std::uint64_t>& byte_offsets) {
  return h5::made_in_memory([&](hid_t file) {
    for (const auto& [name, text] : attributes) {
      h5::write_attribute(file, name.c_str(), text);
    }
    for (const ArrayToWrite& array : arrays) {
      FOURFOLD_EXPECT(array.shape.rank() > 0 && array.shape.elements() > 0);
      const h5::Id dataset =
          h5::create_dataset(file, array.name, h5::type_of(array.dtype), h5::space_of(array.shape));
      byte_offsets.push_back(h5::offset_of(dataset.get()));
    }
  });
}

}  // namespace fourfold::io
