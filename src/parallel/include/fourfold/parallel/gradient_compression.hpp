// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/arena.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/compression.hpp>
#include <fourfold/parallel/error_feedback.hpp>
#include <fourfold/parallel/gradient_reduction.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace fourfold::parallel {

struct CompressionOptions {
  Compression kind = Compression::none;
  std::int64_t rank = 0;        ///< as GradientCompression's
  std::uint64_t seed = 0;       ///< low_rank: of the factors that a start begins with
  bool steps_may_skip = false;  ///< f16: ErrorFeedback's may_skip
  /// Whether sums over so many ranks leave something out, which is kept: ErrorFeedback.
  bool keeps_errors(std::int64_t ranks) const noexcept {
    return kind != Compression::none && ranks > 1;
  }
};

/// What the other positions of the tp axis have of a matrix. Copies must stay the same bits.
enum class Copies : std::uint8_t {
  none,    ///< nothing
  alike,   ///< copies, in memory that is cut as here
  unlike,  ///< copies that may be cut elsewhere
};

/// Whether low_rank sends at most half of what the matrix has: others travel as they are.
bool gains_by_low_rank(std::int64_t rows, std::int64_t columns, std::int64_t rank) noexcept;

/// reduce_each_step() (gradient_reduction.hpp) with fewer bytes on the wire: what a rank sends of a
/// matrix is its gradient and its error, coded, and what the code leaves out is its error next.
/// Vectors travel in f32. Sums are taken in f32 in the order of ranks, of decoded numbers, and
/// every rank that has an element has the same bits of it.
///
/// bf16, int8: in the group, each rank gets the coded shares of the others (all_to_all) and adds
/// them to its own, which needs no code. If nothing is shared out, the sums are coded again and
/// gathered, and what that leaves out is the adder's error. Between groups likewise.
///
/// low_rank: with X the gradient and error of a rank's matrix [N, M], Q [M, R] what the last step
/// ended with: P = sum of X Q over ranks, made orthonormal; Q = sum of X^T P; the sum is taken to
/// be P Q^T, and X - P (X^T P)^T is the rank's error. Both sums are over the whole data plane, in
/// f32.
///
/// @param options   kind is not none
/// @param copies_of  a matrix. bf16 and int8 round by where memory is cut: they code copies apart
///   from the rest, and leave those that are unlike in f32. Borrowed during the call
/// @param errors    borrowed; finish_step() is called on it by the reduction's
/// Collective, as GradientReduction; the memory is the arena's.
std::unique_ptr<GradientReduction> reduce_compressed(
    const ReductionPlan& plan, const CompressionOptions& options,
    const std::function<Copies(const model::Parameter&)>& copies_of, ErrorFeedback& errors,
    device::Arena& arena);

}  // namespace fourfold::parallel
