// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_blocks_host.hpp"

#include "vectors/storage.hpp"

#include <fourfold/base/contract.hpp>

#include <cstddef>

namespace fourfold::kernels {
namespace {

template <class Element>
void load_rows_of(const ConstHeads& x, std::int64_t head_dim, std::int64_t first,
                  std::int64_t tokens, float factor, float* target, std::int64_t stride) {
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Element* source = x.as<const Element>() + (first + t) * x.token_stride;
    float* row = target + t * stride;
    for (std::int64_t h = 0; h < head_dim; ++h) {
      row[h] = factor * to_float(source[h]);
    }
    std::fill(row + head_dim, row + stride, 0.0F);
  }
}

template <class Element>
void load_transposed_of(const ConstHeads& x, std::int64_t head_dim, std::int64_t first,
                        std::int64_t tokens, float* target) {
  constexpr std::int64_t features =
      8;  // at a time, so that the lines written to stay in the first-level cache
  for (std::int64_t h0 = 0; h0 < head_dim; h0 += features) {
    const std::int64_t end = std::min(features, head_dim - h0);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const Element* source = x.as<const Element>() + (first + t) * x.token_stride + h0;
      float* column = target + h0 * attention_block + t;
      for (std::int64_t h = 0; h < end; ++h) {
        column[h * attention_block] = to_float(source[h]);
      }
    }
  }
}

template <class Element>
void store_rows_of(const float* source, std::int64_t stride, float factor, const Heads& x,
                   std::int64_t head_dim, std::int64_t first, std::int64_t tokens) {
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = source + t * stride;
    Element* target = x.as<Element>() + (first + t) * x.token_stride;
    for (std::int64_t h = 0; h < head_dim; ++h) {
      store(target[h], factor * row[h]);
    }
  }
}

}  // namespace

void load_rows(const ConstHeads& x, std::int64_t head_dim, std::int64_t first, std::int64_t tokens,
               std::int64_t padded_tokens, float factor, float* target, std::int64_t stride) {
  with_storage(x.dtype, [&]<class Element>(Element) {
    load_rows_of<Element>(x, head_dim, first, tokens, factor, target, stride);
  });
  std::fill(target + tokens * stride, target + padded_tokens * stride, 0.0F);
}

void load_transposed(const ConstHeads& x, std::int64_t head_dim, std::int64_t first,
                     std::int64_t tokens, float* target) {
  with_storage(x.dtype, [&]<class Element>(Element) {
    load_transposed_of<Element>(x, head_dim, first, tokens, target);
  });
  for (std::int64_t h = 0; h < head_dim; ++h) {
    std::fill(target + h * attention_block + tokens, target + (h + 1) * attention_block, 0.0F);
  }
}

void store_rows(const float* source, std::int64_t stride, float factor, const Heads& x,
                std::int64_t head_dim, std::int64_t first, std::int64_t tokens) {
  with_storage(x.dtype, [&]<class Element>(Element) {
    store_rows_of<Element>(source, stride, factor, x, head_dim, first, tokens);
  });
}

void add_rows(const float* source, std::int64_t stride, float factor, const Heads& x,
              std::int64_t head_dim, std::int64_t first, std::int64_t tokens) {
  FOURFOLD_EXPECT(x.dtype == DType::f32);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = source + t * stride;
    float* target = x.as<float>() + (first + t) * x.token_stride;
    for (std::int64_t h = 0; h < head_dim; ++h) {
      target[h] += factor * row[h];
    }
  }
}

}  // namespace fourfold::kernels
