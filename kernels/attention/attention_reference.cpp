// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fourfold::kernels::reference {

namespace {

/// Element (b, t, n, h) of a tensor of heads.
template <class Pointer>
std::int64_t index(const AttentionShape& shape, const BasicHeads<Pointer>& x, std::int64_t b,
                   std::int64_t t, std::int64_t n, std::int64_t h) {
  return b * x.batch_stride + t * x.token_stride + n * shape.head_dim + h;
}

template <class Pointer>
double at(const AttentionShape& shape, const BasicHeads<Pointer>& x, std::int64_t b, std::int64_t t,
          std::int64_t n, std::int64_t h) {
  return read_element(x.data, x.dtype, index(shape, x, b, t, n, h));
}

void put(const AttentionShape& shape, const Heads& x, std::int64_t b, std::int64_t t,
         std::int64_t n, std::int64_t h, double value) {
  write_element(x.data, x.dtype, index(shape, x, b, t, n, h), value);
}

std::int64_t visible_keys(const AttentionShape& shape, std::int64_t query) {
  if (!shape.causal) {
    return shape.key_tokens;
  }
  return std::clamp<std::int64_t>(query + shape.query_offset + 1, 0, shape.key_tokens);
}

double dot(const AttentionShape& shape, const ConstHeads& a, std::int64_t token_a,
           std::int64_t head_a, const ConstHeads& c, std::int64_t token_c, std::int64_t head_c,
           std::int64_t b) {
  double sum = 0;
  for (std::int64_t h = 0; h < shape.head_dim; ++h) {
    sum += at(shape, a, b, token_a, head_a, h) * at(shape, c, b, token_c, head_c, h);
  }
  return sum;
}

/// The element becomes `value`, or has it added.
void write(Write how, const AttentionShape& shape, const Heads& x, std::int64_t b, std::int64_t t,
           std::int64_t n, std::int64_t h, double value) {
  const double before = how == Write::accumulate ? at(shape, x, b, t, n, h) : 0.0;
  put(shape, x, b, t, n, h, before + value);
}

void write(Write how, const AttentionShape& shape, const std::vector<double>& sum_TH,
           const Heads& target, std::int64_t b, std::int64_t n) {
  for (std::int64_t t = 0; t < shape.key_tokens; ++t) {
    for (std::int64_t h = 0; h < shape.head_dim; ++h) {
      write(how, shape, target, b, t, n, h, sum_TH[t * shape.head_dim + h]);
    }
  }
}

}  // namespace

void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
               float* lse_BNT, device::StreamRef /*stream*/) {
  std::vector<double> score(shape.key_tokens);
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t n = 0; n < shape.heads; ++n) {
      const std::int64_t kv = n / (shape.heads / shape.kv_heads);
      for (std::int64_t t = 0; t < shape.query_tokens; ++t) {
        const std::int64_t keys = visible_keys(shape, t);
        double maximum = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = 0; j < keys; ++j) {
          score[j] = shape.scale * dot(shape, q, t, n, k, j, kv, b);
          maximum = std::max(maximum, score[j]);
        }
        double denominator = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          score[j] = std::exp(score[j] - maximum);
          denominator += score[j];
        }
        for (std::int64_t h = 0; h < shape.head_dim; ++h) {
          double sum = 0;
          for (std::int64_t j = 0; j < keys; ++j) {
            sum += score[j] * at(shape, v, b, j, kv, h);
          }
          put(shape, out, b, t, n, h, keys == 0 ? 0.0 : sum / denominator);
        }
        lse_BNT[(b * shape.heads + n) * shape.query_tokens + t] =
            keys == 0 ? -std::numeric_limits<float>::infinity()
                      : static_cast<float>(maximum + std::log(denominator));
      }
    }
  }
}

void attention_merge(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                     Heads out, float* lse_BNT, device::StreamRef stream) {
  const std::int64_t width = shape.heads * shape.head_dim;
  std::vector<float> more(shape.batch * shape.query_tokens * width);
  std::vector<float> more_lse(shape.batch * shape.heads * shape.query_tokens);
  const Heads added{more.data(), DType::f32, shape.query_tokens * width, width};
  reference::attention(shape, q, k, v, added, more_lse.data(), stream);
  for (std::int64_t row = 0; row < std::ssize(more_lse); ++row) {
    const std::int64_t t = row % shape.query_tokens;
    const std::int64_t n = row / shape.query_tokens % shape.heads;
    const std::int64_t b = row / shape.query_tokens / shape.heads;
    const double l1 = lse_BNT[row];
    const double l2 = more_lse[row];
    if (std::isinf(l2)) {
      continue;
    }
    const double m = std::max(l1, l2);
    const double sum = std::exp(l1 - m) + std::exp(l2 - m);
    for (std::int64_t h = 0; h < shape.head_dim; ++h) {
      put(shape, out, b, t, n, h,
          (std::exp(l1 - m) * at(shape, out, b, t, n, h) +
           std::exp(l2 - m) * at(shape, added, b, t, n, h)) /
              sum);
    }
    lse_BNT[row] = static_cast<float>(m + std::log(sum));
  }
}

void attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout, float* delta_BNT,
                     device::StreamRef /*stream*/) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t n = 0; n < shape.heads; ++n) {
      for (std::int64_t t = 0; t < shape.query_tokens; ++t) {
        delta_BNT[(b * shape.heads + n) * shape.query_tokens + t] =
            static_cast<float>(dot(shape, dout, t, n, out, t, n, b));
      }
    }
  }
}

void attention_backward_part(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                             ConstHeads /*out*/, ConstHeads dout, const float* lse_BNT,
                             const float* delta_BNT, Heads dq, Write write_dq, Heads dk, Heads dv,
                             Write write_dkv, device::StreamRef /*stream*/) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const double scale = shape.scale;
  std::vector<double> dq_H(shape.head_dim);
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t kv = 0; kv < shape.kv_heads; ++kv) {
      // Of one key/value head in f64, to be written once at the end.
      std::vector<double> dk_TH(shape.key_tokens * shape.head_dim);
      std::vector<double> dv_TH(shape.key_tokens * shape.head_dim);
      for (std::int64_t n = kv * group; n < (kv + 1) * group; ++n) {
        for (std::int64_t t = 0; t < shape.query_tokens; ++t) {
          const std::int64_t row = (b * shape.heads + n) * shape.query_tokens + t;
          const double delta = delta_BNT[row];
          std::fill(dq_H.begin(), dq_H.end(), 0.0);
          for (std::int64_t j = 0; j < visible_keys(shape, t); ++j) {
            const double p = std::exp(scale * dot(shape, q, t, n, k, j, kv, b) - lse_BNT[row]);
            const double ds = scale * p * (dot(shape, dout, t, n, v, j, kv, b) - delta);
            for (std::int64_t h = 0; h < shape.head_dim; ++h) {
              dq_H[h] += ds * at(shape, k, b, j, kv, h);
              dk_TH[j * shape.head_dim + h] += ds * at(shape, q, b, t, n, h);
              dv_TH[j * shape.head_dim + h] += p * at(shape, dout, b, t, n, h);
            }
          }
          for (std::int64_t h = 0; h < shape.head_dim; ++h) {
            write(write_dq, shape, dq, b, t, n, h, dq_H[h]);
          }
        }
      }
      write(write_dkv, shape, dk_TH, dk, b, kv);
      write(write_dkv, shape, dv_TH, dv, b, kv);
    }
  }
}

void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                        Heads dq, Heads dk, Heads dv, device::StreamRef stream) {
  reference::attention_delta(shape, out, dout, delta_BNT, stream);
  reference::attention_backward_part(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq,
                                     Write::replace, dk, dv, Write::replace, stream);
}

void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef /*stream*/) {
  for (std::int64_t b = 0; b < rows.batch; ++b) {
    for (std::int64_t t = 0; t < rows.tokens; ++t) {
      for (std::int64_t f = 0; f < rows.features; ++f) {
        write_element(
            to.data, to.dtype, b * to.batch_stride + t * to.token_stride + f,
            read_element(from.data, from.dtype, b * from.batch_stride + t * from.token_stride + f));
      }
    }
  }
}

}  // namespace fourfold::kernels::reference
