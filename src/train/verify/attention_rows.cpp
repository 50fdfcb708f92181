// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_rows.hpp"

#include "matmul_sums.hpp"
#include "tensor_difference.hpp"

#include <fourfold/train/mesh_verification.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>

namespace fourfold::train {
namespace {

using kernels::AttentionShape;

constexpr std::int64_t most_rows = most_attention_rows;
constexpr double single = 0x1p-24;
/// A probability below that may be zero to a kernel.
constexpr double least_p = 0x1p-126;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// One head of one token.
using Vector = std::span<const float>;

double dot(Vector a, Vector b) {
  double sum = 0;
  for (std::size_t h = 0; h < a.size(); ++h) {
    const double x = a[h];
    sum += x * b[h];
  }
  return sum;
}

double norm(Vector a) {
  return std::sqrt(dot(a, a));
}

/// A place in a tensor of heads.
struct Row {
  std::int64_t batch;
  std::int64_t token;
  std::int64_t head;
};

Vector at(const AttentionShape& shape, const HostHeads& heads, Row row) {
  const std::int64_t first =
      row.batch * heads.batch_stride + row.token * heads.token_stride + row.head * shape.head_dim;
  return Vector(heads.values).subspan(first, shape.head_dim);
}

std::size_t lse_index(const AttentionShape& shape, Row query) {
  return (query.batch * shape.heads + query.head) * shape.query_tokens + query.token;
}

Row key_of(const AttentionShape& shape, Row query, std::int64_t token) {
  return {query.batch, token, query.head / (shape.heads / shape.kv_heads)};
}

std::int64_t visible_keys(const AttentionShape& shape, std::int64_t query) {
  return shape.causal
             ? std::clamp<std::int64_t>(query + shape.query_offset + 1, 0, shape.key_tokens)
             : shape.key_tokens;
}

/// A sum of terms, and of what rounding does to each.
struct Sum {
  double value = 0;
  double terms2 = 0;
  double off2 = 0;
  double common = 0;

  /// @param relative  what each term is off by, as a share of it
  double unit(double relative) const {
    return relative * (std::sqrt(terms2) + std::fabs(value)) + std::sqrt(off2) + std::fabs(common);
  }
};
using Sums = std::vector<Sum>;  ///< one per feature of a head

/// Adds weight x, of a weight that is off by `off` beside what rounding it does.
void add(Sums& sums, double weight, Vector x, double off = 0) {
  for (std::size_t h = 0; h < sums.size(); ++h) {
    const double value = x[h];
    sums[h].value += weight * value;
    sums[h].terms2 += square(weight * value);
    sums[h].off2 += square(off * value);
  }
}

/// All terms are off by what has one cause: weight x, all with the same sign.
void add_common(Sums& sums, double weight, Vector x) {
  for (std::size_t h = 0; h < sums.size(); ++h) {
    sums[h].common += weight * x[h];
  }
}

/// Storage takes no number further than its roundoff. That is 7.9 units: just within the usual
/// tolerance, 8, so that little more than it is beyond.
double storage_unit(DType stored, double made) {
  return roundoff(stored) * std::fabs(made) / 7.9 + underflow(stored);
}

/// What f16 cannot hold becomes infinite, here or before: of operands that are not finite a kernel
/// may make numbers that are not either, even of those it then leaves out of a sum (0 * inf).
bool are_finite(std::initializer_list<const HostHeads*> operands) {
  return std::ranges::all_of(operands, [](const HostHeads* heads) {
    return std::ranges::all_of(heads->values, [](float value) { return std::isfinite(value); });
  });
}
bool only_overflows(double made, double expected, DType stored) {
  return std::isinf(made) && stored == DType::f16 && std::fabs(expected) > 65504 * (1 - 0x1p-9) &&
         std::signbit(made) == std::signbit(expected);
}

/// How far a number of a result is off; 0 where nothing can be said of it.
double error_of(double made, double expected, double unit, DType stored) {
  const bool says_something = std::isfinite(expected) && !only_overflows(made, expected, stored);
  return says_something ? ratio(std::fabs(made - expected), unit) : 0;
}

void note(Departure& worst, double error, std::string_view what, std::int64_t feature, Row row) {
  worst.take(error, [&] {
    return fmt::format("{} {} of head {}, token {}, sequence {}", what, feature, row.head,
                       row.token, row.batch);
  });
}

/// Calls use(row) for the rows looked at.
template <class Use>
void for_each_row(const AttentionShape& shape, std::int64_t heads, std::int64_t tokens,
                  PhiloxKey key, const Use& use) {
  const std::vector<std::int64_t> looked_at = random_rows(most_rows, tokens, key);
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (const std::int64_t token : looked_at) {
        use(Row{batch, token, head});
      }
    }
  }
}

/// Attention of one query over the keys of one call.
struct Attended {
  Sums out;
  double lse = -infinity;
  double rounding = 4;  ///< S
};

Attended attend(const HostAttention& made, Row query) {
  const AttentionShape& shape = made.shape;
  const std::int64_t keys = visible_keys(shape, query.token);
  Attended result{Sums(shape.head_dim)};
  std::vector<double> scores;
  const double scale = shape.scale;
  const Vector q = at(shape, made.q, query);
  double longest = 0;
  double largest = 0;
  double most = -infinity;
  for (std::int64_t j = 0; j < keys; ++j) {
    const Vector k = at(shape, made.k, key_of(shape, query, j));
    scores.push_back(scale * dot(q, k));
    most = std::max(most, scores.back());
    largest = std::max(largest, std::fabs(scores.back()));
    longest = std::max(longest, norm(k));
  }
  double sum = 0;
  for (const double score : scores) {
    sum += std::exp(score - most);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    const double p = std::exp(scores[j] - most) / sum;
    add(result.out, p, at(shape, made.v, key_of(shape, query, j)), least_p);
  }
  result.lse = keys == 0 ? -infinity : most + std::log(sum);
  result.rounding +=
      std::sqrt(shape.head_dim) * scale * norm(q) * longest + largest + std::sqrt(keys);
  return result;
}

/// What one pass backward has of a query.
struct QueryFacts {
  double lse;
  double delta;
  double delta_off;
  double q_norm;
  double dout_norm;
};

QueryFacts facts_of(const HostAttention& made, Row query) {
  const AttentionShape& shape = made.shape;
  const Vector dout = at(shape, made.dout, query);
  QueryFacts facts{.lse = made.lse_BNT[lse_index(shape, query)],
                   .delta = 0,
                   .delta_off = 0,
                   .q_norm = norm(at(shape, made.q, query)),
                   .dout_norm = norm(dout)};
  if (made.out.empty()) {
    facts.delta = made.delta_BNT[lse_index(shape, query)];
    facts.delta_off = single * std::fabs(facts.delta);
  } else {
    const Vector out = at(shape, made.out, query);
    facts.delta = dot(dout, out);
    facts.delta_off = single * std::sqrt(shape.head_dim) * facts.dout_norm * norm(out);
  }
  return facts;
}

/// One pair of a query and a key.
struct Pair {
  double p;
  double ds;
  double p_off;   ///< what rounding of the score makes of p
  double ds_off;  ///< and, with that of dp, of ds
  double ds_of_delta;
};

Pair pair_of(const HostAttention& made, const QueryFacts& facts, Row query, Row key) {
  const AttentionShape& shape = made.shape;
  const Vector k = at(shape, made.k, key);
  const Vector v = at(shape, made.v, key);
  constexpr double most = 300;  // of an exponent that a double can hold with all its products
  const double scale = shape.scale;
  const double score = scale * dot(at(shape, made.q, query), k);
  const double root = std::sqrt(shape.head_dim);
  const double p = std::exp(std::min(score - facts.lse, most));
  const double dp = dot(at(shape, made.dout, query), v);
  const double off = single * (4 + root * scale * facts.q_norm * norm(k) + std::fabs(score) +
                               std::fabs(facts.lse));
  const double ds_of_p = scale * (dp - facts.delta);
  // Scores of millions are rounded to whole numbers and more, which is the exponent of p.
  const double p_off = std::exp(std::min(score - facts.lse + off, most)) - p + least_p;
  return {.p = p,
          .ds = p * ds_of_p,
          .p_off = p_off,
          .ds_off = std::fabs(ds_of_p) * p_off +
                    scale * (p + p_off) * single * root * facts.dout_norm * norm(v),
          .ds_of_delta = scale * (p + p_off) * facts.delta_off};
}

/// Compares one row of a gradient.
void compare(Departure& worst, const AttentionShape& shape, const HostHeads& target,
             const HostHeads& before, const Sums& sums, double relative, Row row,
             std::string_view what) {
  const Vector made = at(shape, target, row);
  for (std::int64_t h = 0; h < shape.head_dim; ++h) {
    const double old = before.empty() ? 0.0 : at(shape, before, row)[h];
    const double unit =
        storage_unit(target.stored, made[h]) + sums[h].unit(relative) + single * std::fabs(old);
    note(worst, error_of(made[h], old + sums[h].value, unit, target.stored), what, h, row);
  }
}

Departure check_queries(const HostAttention& made, PhiloxKey key) {
  const AttentionShape& shape = made.shape;
  Departure worst;
  for_each_row(shape, shape.heads, shape.query_tokens, key, [&](Row query) {
    const std::int64_t keys = visible_keys(shape, query.token);
    const QueryFacts facts = facts_of(made, query);
    Sums dq(shape.head_dim);
    for (std::int64_t j = 0; j < keys; ++j) {
      const Row key_row = key_of(shape, query, j);
      const Pair pair = pair_of(made, facts, query, key_row);
      const Vector k = at(shape, made.k, key_row);
      add(dq, pair.ds, k, pair.ds_off);
      add_common(dq, pair.ds_of_delta, k);
    }
    const double relative =
        made.softmax_roundoff + single * std::sqrt(std::max<std::int64_t>(1, keys));
    compare(worst, shape, made.dq, made.dq_before, dq, relative, query, "query gradient");
  });
  return worst;
}

Departure check_keys(const HostAttention& made, PhiloxKey random) {
  const AttentionShape& shape = made.shape;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const double relative = made.softmax_roundoff +
                          single * std::sqrt(std::max<std::int64_t>(1, shape.query_tokens * group));
  Departure worst;
  for_each_row(shape, shape.kv_heads, shape.key_tokens, random, [&](Row key) {
    Sums dk(shape.head_dim);
    Sums dv(shape.head_dim);
    for (std::int64_t n = key.head * group; n < (key.head + 1) * group; ++n) {
      for (std::int64_t t = 0; t < shape.query_tokens; ++t) {
        const Row query{key.batch, t, n};
        if (key.token >= visible_keys(shape, t)) {
          continue;
        }
        const QueryFacts facts = facts_of(made, query);
        const Pair pair = pair_of(made, facts, query, key);
        add(dk, pair.ds, at(shape, made.q, query), pair.ds_off + pair.ds_of_delta);
        add(dv, pair.p, at(shape, made.dout, query), pair.p_off);
      }
    }
    compare(worst, shape, made.dk, made.dk_before, dk, relative, key, "key gradient");
    compare(worst, shape, made.dv, made.dv_before, dv, relative, key, "value gradient");
  });
  return worst;
}

}  // namespace

Departure check_attention(const HostAttention& made, PhiloxKey key) {
  const AttentionShape& shape = made.shape;
  const bool merges = !made.lse_before_BNT.empty();
  Departure worst;
  if (!are_finite({&made.q, &made.k, &made.v, &made.out_before})) {
    return worst;
  }
  for_each_row(shape, shape.heads, shape.query_tokens, key, [&](Row query) {
    const Attended part = attend(made, query);
    const double l1 = merges ? made.lse_before_BNT[lse_index(shape, query)] : -infinity;
    const double most = std::max(l1, part.lse);
    const double lse =
        most == -infinity ? most : most + std::log(std::exp(l1 - most) + std::exp(part.lse - most));
    const double rounding =
        single *
        (part.rounding + (merges && l1 > -infinity ? 4 + std::fabs(l1) + std::fabs(lse) : 0));
    const double of_exponent =
        std::expm1(std::min(rounding, 300.0));  // of large scores it may be more than 1
    const double before = l1 == -infinity ? 0 : std::exp(l1 - lse);
    const double now = part.lse == -infinity ? 0 : std::exp(part.lse - lse);
    const Vector out = at(shape, made.out, query);
    for (std::int64_t h = 0; h < shape.head_dim; ++h) {
      const double old = merges ? before * at(shape, made.out_before, query)[h] : 0;
      const double unit = storage_unit(made.out.stored, out[h]) +
                          now * part.out[h].unit(made.softmax_roundoff + of_exponent) +
                          of_exponent * std::fabs(old);
      note(worst, error_of(out[h], old + now * part.out[h].value, unit, made.out.stored), "feature",
           h, query);
    }
    const double made_lse = made.lse_BNT[lse_index(shape, query)];
    if (lse == -infinity) {
      worst.take({made_lse == lse ? 0 : infinity, "the log-sum of a query without keys"});
    } else {
      note(worst, error_of(made_lse, lse, rounding + single * std::fabs(lse), DType::f32),
           "log-sum", 0, query);
    }
  });
  return worst;
}

Departure check_attention_gradient(const HostAttention& made, PhiloxKey key) {
  if (!are_finite({&made.q, &made.k, &made.v, &made.dout, &made.out, &made.dq_before,
                   &made.dk_before, &made.dv_before})) {
    return {};
  }
  Departure worst = check_queries(made, key);
  worst.take(check_keys(made, {key.low, ~key.high}));
  return worst;
}

}  // namespace fourfold::train
