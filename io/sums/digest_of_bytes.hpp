// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/digest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace fourfold::io {

/// Digest of the elements that lie in bytes [begin, begin + bytes.size()) of the dense storage of
/// `box`. @pre begin and the size are multiples of the element's size
Digest digest_of_bytes(DType dtype, const Shape& shape, const Box& box, std::uint64_t begin,
                       std::span<const std::byte> bytes);

}  // namespace fourfold::io
