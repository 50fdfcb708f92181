// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What matmul_tuning.hpp is made of: names, the choice from times, and what is known of choices.
#pragma once

#include "gemm.hpp"

#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/matmul_tuning.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::kernels {

/// Bytes that an address is a multiple of, 256 at most, as far as products mind it. 256 for none.
std::uint32_t alignment_of(const void* data);

/// All that a product's ways depend on: products of one kind share a plan, and an entry in files.
struct GemmKind {
  DType dtype;
  DType c_dtype;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool a_transposed;
  bool b_transposed;
  std::int64_t a_row;
  std::int64_t c_row;
  Write write;
  Epilogue epilogue;
  bool has_bias;
  std::uint32_t a_alignment;
  std::uint32_t b_alignment;
  std::uint32_t c_alignment;
  std::uint32_t bias_alignment;
  std::uint32_t aux_alignment;

  /// In words, which differ where kinds do: what files call it.
  std::string str() const;
  friend auto operator<=>(const GemmKind&, const GemmKind&) = default;
};
GemmKind kind_of(DType dtype, const Gemm& product);

/// The way of a product's epilogue by kernels of its own.
inline constexpr const char* apart_way = "apart";

struct AlgorithmTimes {
  std::size_t best = 0;
  std::vector<double> median_us;  ///< of each way; infinite when it had no time
};
/// The way with the least median, but the first of them unless it is beaten by 1 %: less is noise,
/// and the first is what runs without choices have.
/// @param us  rounds of times for each way; empty: it was refused
/// @pre there is a way
AlgorithmTimes fastest_algorithm(const std::vector<std::vector<double>>& us);

// -- what is known of choices, of all threads -----------------------------------------------------

/// Whether products without a choice are to be measured.
bool measures_products();
std::optional<std::string> known_algorithm(const std::string& product);
void note_choice(const MatmulTuning& choice);

// -- of the vendor's library ----------------------------------------------------------------------

/// The names of all ways that it has for a product; the first is the one without a choice. Of
/// cuBLASLt only, for tests that take each.
std::vector<std::string> ways_of(DType dtype, const Gemm& product);
/// Lets products be chosen anew by their next calls.
void forget_algorithms();

inline constexpr std::size_t timing_rounds = 4;

/// Microseconds of several ways to do the same, one after the other, round after round, by events
/// of the device between them: of each way in each round but the first, which loads code and fills
/// caches; none of a way that was refused. Blocks the host until all is done.
/// @param enqueue  enqueues way i on `stream`; false: it is refused, and not asked for again
std::vector<std::vector<double>> time_ways(std::size_t ways, device::StreamRef stream,
                                           const std::function<bool(std::size_t)>& enqueue);

}  // namespace fourfold::kernels
