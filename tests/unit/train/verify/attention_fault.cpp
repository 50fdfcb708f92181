// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The faults of MatmulFault inside attention. Legend as in kernels/attention.hpp.
#include "fault_control.hpp"
#include "linker_wrap.hpp"

#include <fourfold/kernels/attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

namespace fourfold::test {

using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::Heads;
using kernels::Write;

REAL_AND_WRAPPED(attention, FOURFOLD_ATTENTION, const AttentionShape&, ConstHeads, ConstHeads,
                 ConstHeads, Heads, float*, device::StreamRef);
REAL_AND_WRAPPED(attention_merge, FOURFOLD_ATTENTION_MERGE, const AttentionShape&, ConstHeads,
                 ConstHeads, ConstHeads, Heads, float*, device::StreamRef);
REAL_AND_WRAPPED(attention_backward, FOURFOLD_ATTENTION_BACKWARD, const AttentionShape&, ConstHeads,
                 ConstHeads, ConstHeads, ConstHeads, ConstHeads, const float*, float*, Heads, Heads,
                 Heads, device::StreamRef);
REAL_AND_WRAPPED(attention_backward_part, FOURFOLD_ATTENTION_BACKWARD_PART, const AttentionShape&,
                 ConstHeads, ConstHeads, ConstHeads, ConstHeads, ConstHeads, const float*,
                 const float*, Heads, Write, Heads, Heads, Write, device::StreamRef);

namespace {

using Attend = void (*)(const AttentionShape&, ConstHeads, ConstHeads, ConstHeads, Heads, float*,
                        device::StreamRef);

template <class Pointer>
std::int64_t index(const AttentionShape& shape, const kernels::BasicHeads<Pointer>& x,
                   std::int64_t b, std::int64_t t, std::int64_t n, std::int64_t h) {
  return b * x.batch_stride + t * x.token_stride + n * shape.head_dim + h;
}
template <class Pointer>
double at(const AttentionShape& shape, const kernels::BasicHeads<Pointer>& x, std::int64_t b,
          std::int64_t t, std::int64_t n, std::int64_t h) {
  return value_at(x.data, x.dtype, index(shape, x, b, t, n, h));
}
void add(const AttentionShape& shape, const Heads& x, std::int64_t b, std::int64_t t,
         std::int64_t n, std::int64_t h, double more) {
  add_to(x.data, x.dtype, index(shape, x, b, t, n, h), static_cast<float>(more));
}

/// A key of one head of one sequence.
struct Key {
  std::int64_t batch;
  std::int64_t token;
  std::int64_t head;
};
Key spoiled_key(const AttentionShape& shape) {
  const std::int64_t i = spoiled_column() % (shape.batch * shape.kv_heads * shape.key_tokens);
  return {i / (shape.kv_heads * shape.key_tokens), i % shape.key_tokens,
          i / shape.key_tokens % shape.kv_heads};
}

/// All that lies from the first element of these heads to the last.
template <class Pointer>
std::size_t bytes_of(const AttentionShape& shape, const kernels::BasicHeads<Pointer>& x,
                     std::int64_t tokens, std::int64_t heads) {
  return static_cast<std::size_t>(index(shape, x, shape.batch - 1, tokens - 1, heads, 0)) *
         size_in_bytes(x.dtype);
}

/// Keys or values of which one counts twice: so does a column of what is multiplied by them.
class DoubledKey {
 public:
  DoubledKey(const AttentionShape& shape, const ConstHeads& keys)
      : bytes_(bytes_of(shape, keys, shape.key_tokens, shape.kv_heads)), heads_(keys) {
    std::memcpy(bytes_.data(), keys.data, bytes_.size());
    heads_.data = bytes_.data();
    const Key key = spoiled_key(shape);
    for (std::int64_t h = 0; h < shape.head_dim; ++h) {
      set_at(bytes_.data(), keys.dtype, index(shape, keys, key.batch, key.token, key.head, h),
             static_cast<float>(2 * at(shape, keys, key.batch, key.token, key.head, h)));
    }
  }
  DoubledKey(const DoubledKey&) = delete;
  DoubledKey& operator=(const DoubledKey&) = delete;
  const ConstHeads& heads() const noexcept { return heads_; }

 private:
  std::vector<std::byte> bytes_;
  ConstHeads heads_;
};

/// One feature of all tokens, as it was before a call that may add to it.
class SpoiledFeature {
 public:
  SpoiledFeature(Product product, const AttentionShape& shape, const Heads& result,
                 std::int64_t tokens, std::int64_t heads, bool accumulates)
      : shape_(shape), result_(result), tokens_(tokens) {
    if (is_spoiled(product)) {
      feature_ = spoiled_column() % (heads * shape.head_dim);
      for_each([&](std::int64_t b, std::int64_t t) {
        before_.push_back(accumulates ? at(shape_, result_, b, t, 0, *feature_) : 0.0);
      });
    }
  }

  void spoil(device::StreamRef stream) const {
    if (!feature_) {
      return;
    }
    stream.synchronize();
    auto before = before_.begin();
    for_each([&](std::int64_t b, std::int64_t t) {
      add(shape_, result_, b, t, 0, *feature_, at(shape_, result_, b, t, 0, *feature_) - *before++);
    });
  }

 private:
  template <class Use>
  void for_each(const Use& use) const {
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      for (std::int64_t t = 0; t < tokens_; ++t) {
        use(b, t);
      }
    }
  }

  AttentionShape shape_;
  Heads result_;
  std::int64_t tokens_;
  std::optional<std::int64_t> feature_;
  std::vector<double> before_;
};

void attend(Attend real, bool merges, const AttentionShape& shape, ConstHeads q, ConstHeads k,
            ConstHeads v, Heads out, float* lse_BNT, device::StreamRef stream) {
  const SpoiledFeature feature(Product::attention_output, shape, out, shape.query_tokens,
                               shape.heads, merges);
  if (is_spoiled(Product::attention_scores)) {
    const auto rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.query_tokens);
    const std::vector<float> before(lse_BNT, lse_BNT + rows);
    std::vector<std::byte> out_before(bytes_of(shape, out, shape.query_tokens, shape.heads));
    std::memcpy(out_before.data(), out.data, out_before.size());
    real(shape, q, k, v, out, lse_BNT, stream);
    const std::vector<float> right(lse_BNT, lse_BNT + rows);
    std::ranges::copy(before, lse_BNT);
    std::memcpy(out.data, out_before.data(), out_before.size());
    const DoubledKey doubled(shape, k);
    real(shape, q, doubled.heads(), v, out, lse_BNT, stream);
    if (!std::ranges::equal(right, std::vector<float>(lse_BNT, lse_BNT + rows))) {
      note_change();
    }
  } else {
    real(shape, q, k, v, out, lse_BNT, stream);
  }
  feature.spoil(stream);
}

/// What attention's gradients are made of.
struct Operands {
  AttentionShape shape;
  ConstHeads q, k, v, out, dout;
  const float* lse_BNT;
  const float* delta_BNT;  ///< nullptr: of out and dout
};

double dot(const AttentionShape& shape, const ConstHeads& a, std::int64_t token_a,
           std::int64_t head_a, const ConstHeads& c, std::int64_t token_c, std::int64_t head_c,
           std::int64_t b) {
  double sum = 0;
  for (std::int64_t h = 0; h < shape.head_dim; ++h) {
    sum += at(shape, a, b, token_a, head_a, h) * at(shape, c, b, token_c, head_c, h);
  }
  return sum;
}

/// Adds to the gradients what a column of scores that counts twice adds: of the one key alone.
void double_scores(const Operands& with, const Heads& dq, const Heads& dk, const Heads& dv) {
  const AttentionShape& shape = with.shape;
  const Key key = spoiled_key(shape);
  const std::int64_t b = key.batch;
  const std::int64_t group = shape.heads / shape.kv_heads;
  for (std::int64_t n = key.head * group; n < (key.head + 1) * group; ++n) {
    for (std::int64_t t = 0; t < shape.query_tokens; ++t) {
      if (shape.causal && key.token > t + shape.query_offset) {
        continue;
      }
      const std::int64_t row = (b * shape.heads + n) * shape.query_tokens + t;
      const double score = shape.scale * dot(shape, with.q, t, n, with.k, key.token, key.head, b);
      const double lse = with.lse_BNT[row];
      const double delta = with.delta_BNT != nullptr
                               ? with.delta_BNT[row]
                               : dot(shape, with.dout, t, n, with.out, t, n, b);
      const double dp = dot(shape, with.dout, t, n, with.v, key.token, key.head, b);
      const double more = std::exp(2 * score - lse) - std::exp(score - lse);
      const double more_ds = shape.scale * more * (dp - delta);
      for (std::int64_t h = 0; h < shape.head_dim; ++h) {
        add(shape, dq, b, t, n, h, more_ds * at(shape, with.k, b, key.token, key.head, h));
        add(shape, dk, b, key.token, key.head, h, more_ds * at(shape, with.q, b, t, n, h));
        add(shape, dv, b, key.token, key.head, h, more * at(shape, with.dout, b, t, n, h));
      }
    }
  }
}

/// @param real  makes the gradients with these values
template <class Real>
void differentiate(const Operands& with, const Heads& dq, bool adds_dq, const Heads& dk,
                   const Heads& dv, bool adds_dkv, device::StreamRef stream, const Real& real) {
  const AttentionShape& shape = with.shape;
  const SpoiledFeature query(Product::query_gradient, shape, dq, shape.query_tokens, shape.heads,
                             adds_dq);
  const SpoiledFeature key(Product::key_gradient, shape, dk, shape.key_tokens, shape.kv_heads,
                           adds_dkv);
  const SpoiledFeature value(Product::value_gradient, shape, dv, shape.key_tokens, shape.kv_heads,
                             adds_dkv);
  if (is_spoiled(Product::softmax_gradient)) {
    const DoubledKey doubled(shape, with.v);
    real(doubled.heads());
    if (!shape.causal || spoiled_key(shape).token < shape.query_tokens + shape.query_offset) {
      note_change();  // some query sees it
    }
  } else {
    real(with.v);
  }
  if (is_spoiled(Product::scores_again)) {
    stream.synchronize();
    double_scores(with, dq, dk, dv);
  }
  query.spoil(stream);
  key.spoil(stream);
  value.spoil(stream);
}

}  // namespace

void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
               float* lse_BNT, device::StreamRef stream) {
  attend(real_attention, false, shape, q, k, v, out, lse_BNT, stream);
}

void attention_merge(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                     Heads out, float* lse_BNT, device::StreamRef stream) {
  attend(real_attention_merge, true, shape, q, k, v, out, lse_BNT, stream);
}

void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                        Heads dq, Heads dk, Heads dv, device::StreamRef stream) {
  differentiate({shape, q, k, v, out, dout, lse_BNT, nullptr}, dq, false, dk, dv, false, stream,
                [&](const ConstHeads& values) {
                  real_attention_backward(shape, q, k, values, out, dout, lse_BNT, delta_BNT, dq,
                                          dk, dv, stream);
                });
}

void attention_backward_part(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                             ConstHeads out, ConstHeads dout, const float* lse_BNT,
                             const float* delta_BNT, Heads dq, Write write_dq, Heads dk, Heads dv,
                             Write write_dkv, device::StreamRef stream) {
  differentiate({shape, q, k, v, out, dout, lse_BNT, delta_BNT}, dq, write_dq == Write::accumulate,
                dk, dv, write_dkv == Write::accumulate, stream, [&](const ConstHeads& values) {
                  real_attention_backward_part(shape, q, k, values, out, dout, lse_BNT, delta_BNT,
                                               dq, write_dq, dk, dv, write_dkv, stream);
                });
}

}  // namespace fourfold::test
