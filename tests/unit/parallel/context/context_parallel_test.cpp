// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Attention over a cut sequence against kernels::reference over the whole one.
#include "attention/attention_backend.hpp"
#include "shared_arena.hpp"
#include "sweep.hpp"
#include "trace/counting_communicator.hpp"
#include "vectors/random_tensor.hpp"

#include <fourfold/device/arena.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/kernels/library_memory.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/parallel/context_parallel.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using device::Tensor;
using harness::Findings;
using harness::on_ranks;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::Heads;

constexpr device::StreamRef stream;

/// Heads as multiples of the number of ranks, so that ulysses can deal them.
struct Sizes {
  std::int64_t batch;
  std::int64_t chunk;  ///< tokens of one of the 2 cp chunks
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t margin = 3;  ///< elements of something else at both ends of a row
  std::string str() const {
    return fmt::format("B{} chunk {} N{} K{} H{}", batch, chunk, heads, kv_heads, head_dim);
  }
};

std::vector<Sizes> all_sizes(int cp) {
  std::vector<Sizes> sizes{{2, 5, cp, cp, 5},
                           {1, 7, 2 * cp, 1, 1},  // all ranks share one key/value head
                           {2, 3, 4 * cp, 2 * cp, 13},
                           {1, 100 / cp, cp, 1, 3},    // blocks of keys that end inside a chunk
                           {2, 9, 2 * cp, cp, 16, 8},  // rows on borders of 16 bytes
                           {1, 6, 2 * cp, 1, 16, 8}};
  if (cp % 2 == 0) {
    sizes.push_back({2, 4, 2 * cp, cp / 2, 8});  // each key/value head is shared by two ranks
  }
  return sizes;
}

/// Heads of the tokens of some sequences in rows that are fused as a block's are: [B, T, W].
struct Fused {
  Fused(const Sizes& s, Tensor rows_in) : sizes(s), rows(std::move(rows_in)) {}
  Fused(const Sizes& s, std::int64_t tokens, DType dtype, std::uint64_t seed)
      : Fused(s, test::random_tensor(dtype, {s.batch, tokens, width_of(s)}, seed)) {}
  static std::int64_t width_of(const Sizes& s) {
    return (s.heads + 2 * s.kv_heads) * s.head_dim + 2 * s.margin;
  }
  Heads from(std::int64_t feature) const {
    const TensorView view = rows.view();
    auto* data = static_cast<std::byte*>(view.data()) +
                 (sizes.margin + feature) * static_cast<std::int64_t>(size_in_bytes(view.dtype()));
    return {data, view.dtype(), view.dim(1) * view.dim(2), view.dim(2)};
  }
  Heads q() const { return from(0); }
  Heads k() const { return from(sizes.heads * sizes.head_dim); }
  Heads v() const { return from((sizes.heads + sizes.kv_heads) * sizes.head_dim); }
  Range q_features() const { return {sizes.margin, sizes.heads * sizes.head_dim}; }
  Range all_features() const { return {sizes.margin, rows.shape()[2] - 2 * sizes.margin}; }

  Sizes sizes;
  Tensor rows;
};

ConstHeads reads(const Heads& x) {
  return {x.data, x.dtype, x.batch_stride, x.token_stride};
}

/// The rows of one rank's tokens of [B, T, W].
Tensor local_rows(const Tensor& whole, int cp, int rank) {
  const std::int64_t tokens = whole.shape()[1];
  const std::int64_t width = whole.shape()[2];
  Tensor local(whole.view().dtype(), {whole.shape()[0], tokens / cp, width});
  std::int64_t to = 0;
  for (std::int64_t b = 0; b < whole.shape()[0]; ++b) {
    for (const Range& chunk : context_chunks(tokens, cp, rank)) {
      for (std::int64_t i = 0; i < chunk.count * width; ++i) {
        const std::int64_t from = (b * tokens + chunk.begin) * width + i;
        test::set_element(local, to++, test::element(whole, from));
      }
    }
  }
  return local;
}

/// How far the `features` of got are from want beyond one rounding to storage, as a share of the
/// largest; infinite when anything beside them is not as it was before.
double beyond_rounding(const Tensor& got, const Tensor& want, const Tensor& before,
                       Range features) {
  const DType dtype = got.view().dtype();
  const double rounding = dtype == DType::f32 ? 0.0 : test::last_place(dtype) / 2;
  double largest = 1e-30;
  double worst = 0;
  for (std::int64_t i = 0; i < want.shape().elements(); ++i) {
    const std::int64_t feature = i % want.shape()[2];
    const bool meant = feature >= features.begin && feature < features.end();
    const double expected = test::element(meant ? want : before, i);
    const double off = std::fabs(test::element(got, i) - expected);
    if (!std::isfinite(off) || (!meant && off != 0)) {
      return std::numeric_limits<double>::infinity();
    }
    worst = std::max(worst, off - rounding * std::fabs(expected));
    largest = std::max(largest, meant ? std::fabs(expected) : 0.0);
  }
  return worst / largest;
}

AttentionShape shape_of(const Sizes& s, std::int64_t tokens) {
  return {.batch = s.batch,
          .query_tokens = tokens,
          .key_tokens = tokens,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .scale = 1.5F / std::sqrt(static_cast<float>(s.head_dim))};
}

/// Attention over whole sequences, forward and backward, by the reference. Operands in `dtype`,
/// results in f32; the backward pass reads the output as `dtype` stores it.
struct Whole {
  Whole(const Sizes& s, std::int64_t tokens, DType dtype)
      : qkv(s, tokens, dtype, 1),
        dout(s, tokens, dtype, 2),
        out(s, tokens, DType::f32, 3),
        stored_out(s, tokens, dtype, 3),
        gradient(s, tokens, DType::f32, 4) {
    const AttentionShape shape = shape_of(s, tokens);
    const Tensor lse(DType::f32, {s.batch, s.heads, tokens});
    const Tensor delta(DType::f32, {s.batch, s.heads, tokens});
    kernels::reference::attention(shape, reads(qkv.q()), reads(qkv.k()), reads(qkv.v()), out.q(),
                                  lse.as<float>(), stream);
    for (std::int64_t i = 0; i < out.rows.shape().elements(); ++i) {
      test::set_element(stored_out.rows, i, test::element(out.rows, i));
    }
    kernels::reference::attention_backward(shape, reads(qkv.q()), reads(qkv.k()), reads(qkv.v()),
                                           reads(stored_out.q()), reads(dout.q()), lse.as<float>(),
                                           delta.as<float>(), gradient.q(), gradient.k(),
                                           gradient.v(), stream);
  }
  Fused qkv;
  Fused dout;  ///< in the place of q; so are the outputs
  Fused out;
  Fused stored_out;
  Fused gradient;  ///< of qkv
};

/// The same by one rank of the cp axis.
struct Part {
  Part(const Whole& whole, Communicator& cp)
      : sizes(whole.qkv.sizes),
        shape(shape_of(sizes, whole.qkv.rows.shape()[1] / cp.size())),
        dtype(whole.qkv.rows.view().dtype()),
        qkv(sizes, local_rows(whole.qkv.rows, cp.size(), cp.rank())),
        dout(sizes, local_rows(whole.dout.rows, cp.size(), cp.rank())),
        given_out(sizes, local_rows(whole.stored_out.rows, cp.size(), cp.rank())),
        out(sizes, shape.query_tokens, dtype, 5),
        gradient(sizes, shape.query_tokens, dtype, 6),
        lse(DType::f32, {sizes.batch, sizes.heads, shape.query_tokens}),
        delta(DType::f32, lse.shape()) {}

  void run(ContextParallel& context) {
    context.attention(shape, reads(qkv.q()), reads(qkv.k()), reads(qkv.v()), out.q(),
                      lse.as<float>(), stream);
    context.attention_backward(shape, reads(qkv.q()), reads(qkv.k()), reads(qkv.v()),
                               reads(given_out.q()), reads(dout.q()), lse.as<float>(),
                               delta.as<float>(), gradient.q(), gradient.k(), gradient.v(), stream);
  }
  double output_error(const Whole& whole, Communicator& cp) const {
    return beyond_rounding(out.rows, local_rows(whole.out.rows, cp.size(), cp.rank()),
                           Fused(sizes, shape.query_tokens, dtype, 5).rows, out.q_features());
  }
  double gradient_error(const Whole& whole, Communicator& cp) const {
    return beyond_rounding(gradient.rows, local_rows(whole.gradient.rows, cp.size(), cp.rank()),
                           Fused(sizes, shape.query_tokens, dtype, 6).rows,
                           gradient.all_features());
  }

  Sizes sizes;
  AttentionShape shape;
  DType dtype;
  Fused qkv;
  Fused dout;
  Fused given_out;  ///< for the backward pass
  Fused out;
  Fused gradient;
  Tensor lse;
  Tensor delta;
};

/// How far results may be off beyond one rounding to storage. Where a device's library may compute
/// parts (attention_backend.hpp) each of them is rounded, too.
double bar(double of_f32, const Sizes& s, DType dtype) {
  const bool is_by_library = device::has_own_memory && dtype != DType::f32 && s.head_dim % 8 == 0;
  return is_by_library ? 3 * test::last_place(dtype) : of_f32;
}

/// Whether all of a rank's gradients are sums of parts that such a library has made.
bool adds_up_parts_of_library(const Part& part, ContextMode mode, int cp) {
  AttentionShape chunk = part.shape;
  chunk.query_tokens /= 2;
  chunk.key_tokens = chunk.query_tokens;
  const bool adds_up = mode != ContextMode::ulysses || part.sizes.kv_heads < cp;
  return adds_up &&
         kernels::vendor_would_serve({chunk, true, reads(part.qkv.q()), reads(part.qkv.k()),
                                      reads(part.qkv.v()), reads(part.given_out.q()), nullptr,
                                      reads(part.dout.q()), reads(part.gradient.q()),
                                      reads(part.gradient.k()), reads(part.gradient.v())});
}

ContextParallelOptions options_for(const Sizes& s, ContextMode mode, DType dtype) {
  return {.mode = mode,
          .sequences = s.batch,
          .tokens = 2 * s.chunk,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .compute = dtype};
}

constexpr ContextMode modes[] = {ContextMode::ring, ContextMode::ulysses, ContextMode::allgather};

TEST_CASE("attention over a cut sequence is that over the whole one", "[context_parallel]") {
  // One bar for all numbers of ranks: f32 arithmetic, and one rounding to storage at the end.
  on_ranks([](Communicator& cp, Findings& findings) {
    if (cp.size() == 1) {
      return;
    }
    fourfold::harness::Sweep sweep(2);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const Sizes& sizes : all_sizes(cp.size())) {
        const Whole whole(sizes, 2 * cp.size() * sizes.chunk, dtype);
        for (const ContextMode mode : modes) {
          if (!sweep.takes_next()) {
            continue;
          }
          const std::string where =
              fmt::format("{} {} {}: ", name(mode), fourfold::name(dtype), sizes.str());
          fourfold::harness::SharedArena arena;
          const auto context = context_parallel(cp, options_for(sizes, mode, dtype), arena);
          arena.seal();
          Part part(whole, cp);
          part.run(*context);
          const double output = part.output_error(whole, cp);
          const double gradient = part.gradient_error(whole, cp);
          findings.check(output <= bar(2e-6, sizes, dtype),
                         where + fmt::format("output off by {:.1e}", output));
          findings.check(gradient <= bar(5e-6, sizes, dtype),
                         where + fmt::format("gradient off by {:.1e}", gradient));
          if (adds_up_parts_of_library(part, mode, cp.size())) {
            findings.check(gradient > 5e-6, where + "no part was rounded: not by the library");
          }
        }
      }
    }
  });
}

TEST_CASE("buffers serve smaller micro-batches, and the same call gives the same bits",
          "[context_parallel]") {
  on_ranks([](Communicator& cp, Findings& findings) {
    if (cp.size() == 1) {
      return;
    }
    const Sizes large{3, 4, 2 * cp.size(), cp.size(), 8};
    Sizes small = large;
    small.batch = 1;
    const Whole whole(large, 2 * cp.size() * large.chunk, DType::bf16);
    const Whole one(small, 2 * cp.size() * large.chunk, DType::bf16);
    for (const ContextMode mode : modes) {
      fourfold::harness::SharedArena arena;
      const auto context = context_parallel(cp, options_for(large, mode, DType::bf16), arena);
      Part first(whole, cp);
      Part between(one, cp);
      Part second(whole, cp);
      first.run(*context);
      between.run(*context);
      second.run(*context);
      const std::string where{name(mode)};
      findings.check(between.output_error(one, cp) <= bar(2e-6, small, DType::bf16),
                     where + ": small output");
      findings.check(between.gradient_error(one, cp) <= bar(5e-6, small, DType::bf16),
                     where + ": small gradient");
      findings.check(test::same_bits(first.out.rows, second.out.rows), where + ": output bits");
      findings.check(test::same_bits(first.gradient.rows, second.gradient.rows),
                     where + ": gradient bits");
    }
  });
}

TEST_CASE("each mode sends and takes what its documentation says", "[context_parallel]") {
  on_ranks([](Communicator& world, Findings& findings) {
    const int c = world.size();
    if (c == 1) {
      fourfold::harness::SharedArena arena;
      const auto nothing = context_parallel(world, {}, arena);
      findings.check(nothing == nullptr && arena.total_bytes() == 0, "one rank takes nothing");
      return;
    }
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::int64_t e = static_cast<std::int64_t>(size_in_bytes(dtype));
      for (const Sizes& s : all_sizes(c)) {
        const std::int64_t rows = s.batch * 2 * s.chunk;
        const std::int64_t kv = rows * s.kv_heads * s.head_dim;
        const std::int64_t queries = rows * s.heads * s.head_dim;
        const std::int64_t dealt_kv = rows * std::max<std::int64_t>(s.kv_heads, c) * s.head_dim;
        const std::int64_t shared_e = s.kv_heads < c ? 4 : e;
        // Outputs are dealt in the place of delta where a device's library may compute.
        const bool deals_out = device::has_own_memory && e == 2;
        const std::int64_t sent_queries = (deals_out ? 4 : 3) * queries;
        const std::int64_t deltas = (deals_out ? 0 : 1) * rows * s.heads;
        const std::int64_t ulysses_bytes = std::max((sent_queries - queries + 2 * dealt_kv) * e,
                                                    queries * e + 2 * dealt_kv * shared_e);
        struct Expected {
          ContextMode mode;
          std::int64_t forward;
          std::int64_t backward;
          std::int64_t taken;
        };
        const Expected all[] = {
            {ContextMode::ring, (c - 1) * 2 * kv * e, (c - 1) * 2 * kv * (e + 4),
             4 * kv * e + 6 * kv * 4 + (e == 2 ? queries * 4 : 0)},
            {ContextMode::ulysses, (c - 1) * (2 * queries + 2 * dealt_kv) * e / c,
             (c - 1) * ((sent_queries + 2 * dealt_kv) * e + 2 * dealt_kv * shared_e + deltas * 4) /
                 c,
             2 * ulysses_bytes + (rows * s.heads + deltas) * 4},
            {ContextMode::allgather, (c - 1) * 2 * kv * e, (c - 1) * 2 * kv * (e + 4),
             (2 + 4 * c) * kv * 4}};
        const Whole whole(s, c * 2 * s.chunk, dtype);
        for (const Expected& expected : all) {
          const std::string where =
              fmt::format("{} {} {}: ", name(expected.mode), fourfold::name(dtype), s.str());
          test::CountingCommunicator cp(world);
          fourfold::harness::SharedArena arena;
          const auto context = context_parallel(cp, options_for(s, expected.mode, dtype), arena);
          Part part(whole, cp);
          context->attention(part.shape, reads(part.qkv.q()), reads(part.qkv.k()),
                             reads(part.qkv.v()), part.out.q(), part.lse.as<float>(), stream);
          const std::int64_t forward = cp.sent_bytes();
          part.run(*context);
          const std::int64_t backward = cp.sent_bytes() - 2 * forward;
          findings.check(
              forward == expected.forward,
              where + fmt::format("{} bytes forward, not {}", forward, expected.forward));
          findings.check(
              backward == expected.backward,
              where + fmt::format("{} bytes backward, not {}", backward, expected.backward));
          const auto taken = static_cast<std::int64_t>(arena.total_bytes());
          findings.check(taken == expected.taken,
                         where + fmt::format("takes {} bytes, not {}", taken, expected.taken));
        }
      }
    }
  });
}

TEST_CASE("a device's library takes the memory that was planned", "[context_parallel]") {
  on_ranks([](Communicator& cp, Findings& findings) {
    // More than any other case here: scratch memory grows and never shrinks.
    const Sizes sizes{4, 10, 2 * cp.size(), cp.size(), 16, 8};
    const Whole whole(sizes, 2 * cp.size() * sizes.chunk, DType::bf16);
    if (cp.size() == 1 ||
        !adds_up_parts_of_library(Part(whole, cp), ContextMode::ring, cp.size())) {
      return;
    }
    const int capability = device::device_facts().compute_capability;
    std::int64_t workspace = 0;
    std::int64_t staging = 0;
    std::int64_t planned = 0;
    for (const ContextMode mode : modes) {
      const ContextParallelOptions options = options_for(sizes, mode, DType::bf16);
      const auto uses = attention_uses(options, cp.size(), cp.rank(), true);
      for (const kernels::AttentionUse& use : uses) {
        workspace = std::max(workspace, kernels::attention_workspace_bytes(use.shape, capability));
        staging = std::max({staging, kernels::attention_staging_bytes(use, false),
                            kernels::attention_staging_bytes(use, true)});
      }
      planned = std::max(planned, kernels::library_memory_bytes(uses, DType::bf16, capability));
      fourfold::harness::SharedArena arena;
      const auto context = context_parallel(cp, options, arena);
      Part part(whole, cp);
      part.run(*context);
      const auto taken = static_cast<std::int64_t>(kernels::scratch_bytes());
      const std::string where = fmt::format("{}: {} bytes of scratch", name(mode), taken);
      findings.check(taken <= planned, where + fmt::format(", {} planned", planned));
      if (kernels::vendor_attention_name() == "portable attention") {  // of an emulated device
        findings.check(taken == workspace + staging,
                       where + fmt::format(", not {} + {}", workspace, staging));
      }
    }
  });
}

}  // namespace
}  // namespace fourfold::parallel
