// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "sums/digest_of_bytes.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/tensor_view.hpp>

namespace fourfold::io {

Digest digest_of_bytes(DType dtype, const Shape& shape, const Box& box, std::uint64_t begin,
                       std::span<const std::byte> bytes) {
  const std::size_t element_bytes = size_in_bytes(dtype);
  FOURFOLD_EXPECT(begin % element_bytes == 0 && bytes.size() % element_bytes == 0);
  const Range range{static_cast<std::int64_t>(begin / element_bytes),
                    static_cast<std::int64_t>(bytes.size() / element_bytes)};
  Digest digest;
  const std::byte* data = bytes.data();
  for (Box part : boxes_of_flat_range(box.extent, range)) {
    for (std::size_t dim = 0; dim < box.rank(); ++dim) {
      part.offset[dim] += box.offset[dim];
    }
    const ConstTensorView view(data, dtype, part.extent);
    digest += digest_of_box(shape, part, view);
    data += view.bytes();
  }
  return digest;
}

}  // namespace fourfold::io
