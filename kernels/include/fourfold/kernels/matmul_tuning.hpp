// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which of its ways a device's library makes each product (matmul.hpp), where it has several. They
/// differ in speed and in the order of their sums, so in last places.
///
/// Without a word each product is made the way that the library puts first, the same in every run.
/// Measuring takes the fastest instead, which the clock decides: two runs that measure may differ;
/// two that are told the same choices do not.
#pragma once

#include <string>
#include <vector>

namespace fourfold::kernels {

struct MatmulTuning {
  std::string product;    ///< dtypes, sizes, strides, alignments, epilogue
  std::string way;        ///< the library's algorithm, or "apart": its epilogue by other kernels
  double us = 0;          ///< that it took
  double default_us = 0;  ///< that the way took which is the one without a choice
  friend bool operator==(const MatmulTuning&, const MatmulTuning&) = default;
};

/// Device and library that choices are of: "NVIDIA H100 80GB HBM3, cuBLASLt 13.0.2". Empty where
/// there is nothing to choose.
std::string matmul_library();

/// From here on a product of `known` is made as it says, if the library still offers that. Others
/// are made as without choices or, if `measure`, measured by their first call: it makes them
/// several times on its stream and waits for the times, and from there on they are made the
/// fastest way; calls of other threads meanwhile, as without choices. Sums of products take as much
/// device memory again for a while; where there is none, and while a stream is captured into a
/// graph, nothing is measured.
/// Of all threads; no product may be made at the same time.
void set_matmul_tuning(const std::vector<MatmulTuning>& known, bool measure);

/// Known and measured ones, in the order of their names.
std::vector<MatmulTuning> known_matmul_tuning();

}  // namespace fourfold::kernels
