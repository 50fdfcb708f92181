// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What attention.cpp asks of the kernels for hosts or for devices (*_host, *_device), whose
/// operands are those of attention.hpp, and as that asks for them. And attention by the vendor's
/// library, cuDNN: which calls it serves, which is a matter of the call and the device alone, and
/// the calls themselves (attention.cudnn.cpp; where the build has no headers of cuDNN
/// no_vendor_attention.cpp; on an emulated device vendor_attention.emulated.cpp). What it does not
/// serve the portable body does, and either goes on from what the other has left: both keep the
/// same lse.
#pragma once

#include <fourfold/kernels/attention.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::kernels {

/// The most features of a head that the kernels for devices take.
inline constexpr std::int64_t most_device_head_dim = 256;

/// attention(), or attention_merge(). There is a query.
void attend(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
            float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_delta()
void sum_attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout,
                         float* delta_BNT, device::StreamRef stream);

/// attention_backward_part()
void differentiate_attention_part(const AttentionGradients& with, device::StreamRef stream);

/// attention_backward()
/// @param delta_BNT  that of `with`, which is yet to be made where the kernel wants it
void differentiate_attention(const AttentionGradients& with, float* delta_BNT,
                             device::StreamRef stream);

// -- the vendor's library -----------------------------------------------------------------------

inline ConstHeads read_only(const Heads& x) {
  return {x.data, x.dtype, x.batch_stride, x.token_stride};
}

/// All that one attention() or attention_backward() reads and writes. Of one part of the keys the
/// backward pass is the same, with out and lse over all keys: cuDNN makes delta from out and dout,
/// and the softmax from lse.
struct AttentionCall {
  AttentionShape shape;
  bool is_backward = false;
  ConstHeads q{};
  ConstHeads k{};
  ConstHeads v{};
  ConstHeads out{};
  const float* lse_BNT = nullptr;
  ConstHeads dout{};  ///< this and the next of a backward pass only
  ConstHeads dq{};
  ConstHeads dk{};
  ConstHeads dv{};

  /// q, k, v, out; dout, dq, dk, dv
  std::vector<ConstHeads> operands() const;
};

/// The masks that the library has words for.
enum class AttentionMask : std::uint8_t {
  none,          ///< each query sees each key
  top_left,      ///< query i sees keys 0 .. i, and there are as many queries as keys
  bottom_right,  ///< the last query sees all keys, each one before it one key less
  other
};
AttentionMask mask_of(const AttentionShape& shape);

/// Whether the library serves a call on a device of that compute capability (90 for 9.0): rows of
/// 16 bits, all of one type and on borders of 16 bytes, in one of its masks, two queries or more,
/// heads of at most 256 features (backward 128, but for 9.0). It may refuse some of them all the
/// same, then with a warning.
bool vendor_serves(const AttentionCall& call, int compute_capability);

/// What so many results of 16 bits take in scratch memory that others follow.
std::int64_t staged_bytes(std::int64_t elements);

/// What is wrong with a version of cuDNN (91900 for 9.19.0; 0: there is none), and what to do about
/// it; empty when it serves.
std::string cudnn_defect(std::size_t version);

/// Enqueues a call, or nothing when the library does not serve it: false. The first call of a shape
/// makes a plan, which takes a second or two; later ones allocate nothing, and a stream can be
/// captured. Each host thread has plans of its own.
/// @throws SystemError (node_fault) when the library fails
bool vendor_attention(const AttentionCall& call, device::StreamRef stream);

/// Whether vendor_attention() will enqueue the call; asks no results to be anywhere yet (their data
/// may be null). Makes its plan.
bool vendor_would_serve(const AttentionCall& call);

/// "cuDNN 9.19.0", or "portable attention"
std::string vendor_attention_name();

// -- cuDNN itself, in builds with its headers (cudnn_library.cudnn.cpp) ---------------------------

/// cuDNN as it was found when it was asked for first. Nothing links it: programs start where there
/// is none, and take the one that is there when they run.
struct CudnnLibrary {
  std::size_t version = 0;  ///< 91900 for 9.19.0; 0: none
  std::string defect;       ///< why it does not serve, and what to do; empty: it does
};

/// @returns the same for all threads; finds the library in the first call
const CudnnLibrary& cudnn_library();

/// Why cuDNN has no engine for a call on a device that need not be here; empty when it has one. For
/// tests: cuDNN knows a device by a text in JSON, and finds engines with no more than a
/// libcuda.so.1 that it can load.
std::string refused_by_cudnn(const AttentionCall& call, const std::string& device_json,
                             int compute_capability);

// -- on a device, for callers that add up over parts of the keys
// -----------------------------------

// The library makes results of 16 bits only: those that are wanted in f32 it leaves in scratch
// memory, each rounded once, and they are added up in f32. Both say false, with nothing enqueued,
// when the library does not serve the call.

/// attention(), or attention_merge() if each query sees one of these keys, as they do in the masks
/// that the library has.
bool vendor_attends(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                    Heads out, float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_backward_part(), with delta made from `out` and `dout`.
bool vendor_differentiates(const AttentionGradients& with, device::StreamRef stream);

// Attention on a device without the vendor's library: what that does not serve, and what an
// emulated device has in its place.

/// attention(), or attention_merge(). There is a query.
void portable_attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        Heads out, float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_backward_part().
void portable_attention_backward(const AttentionGradients& with, device::StreamRef stream);

}  // namespace fourfold::kernels
