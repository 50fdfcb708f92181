// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_architecture.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/parallel/context_cut.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

model::Architecture model_of(std::int64_t context, std::int64_t heads, std::int64_t kv_heads) {
  return model_test::small_model({.family = model::Family::llama,
                                  .layers = 1,
                                  .hidden = 8 * heads,
                                  .heads = heads,
                                  .kv_heads = kv_heads,
                                  .context = context});
}

std::string refusal(const model::Architecture& config, ContextMode mode, int cp, int tp = 1) {
  try {
    validate_context_cut(config, mode, cp, tp);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

TEST_CASE("the chunks of all ranks cover a sequence once, in pairs that balance", "[context_cut]") {
  for (int cp = 1; cp <= 16; ++cp) {
    CAPTURE(cp);
    const std::int64_t tokens = cp == 1 ? 7 : std::int64_t{6} * cp;
    std::vector<int> held(static_cast<std::size_t>(tokens), 0);
    for (int rank = 0; rank < cp; ++rank) {
      std::int64_t pairs = 0;
      std::int64_t count = 0;
      std::int64_t before = -1;
      for (const Range& chunk : context_chunks(tokens, cp, rank)) {
        count += chunk.count;
        for (std::int64_t token = chunk.begin; token < chunk.end(); ++token) {
          CHECK(token > before);  // held in causal order
          before = token;
          ++held[static_cast<std::size_t>(token)];
          pairs += token + 1;
        }
      }
      CHECK(count == tokens / cp);
      CHECK(pairs * cp == tokens * (tokens + 1) / 2);  // an equal share of the causal pairs
    }
    CHECK(held == std::vector<int>(static_cast<std::size_t>(tokens), 1));
  }
}

TEST_CASE("the products between two ranks are what the causal mask leaves", "[context_cut]") {
  const int cp = GENERATE(2, 3, 4, 8);
  constexpr std::int64_t length = 3;
  const std::int64_t tokens = 2 * length * cp;
  for (int rank = 0; rank < cp; ++rank) {
    for (int key_rank = 0; key_rank < cp; ++key_rank) {
      CAPTURE(cp, rank, key_rank);
      const auto queries = context_chunks(tokens, cp, rank);
      const auto keys = context_chunks(tokens, cp, key_rank);
      std::int64_t wrong = 0;
      for (int chunk = 0; chunk < 2; ++chunk) {
        for (std::int64_t i = 0; i < length; ++i) {
          for (std::int64_t key = 0; key < 2 * length; ++key) {
            int seen = 0;
            for (const ChunkProduct& product : chunk_products(rank, key_rank)) {
              const Range& range = product.key_chunks;
              const std::int64_t after_first = key - range.begin * length;
              const std::int64_t visible =
                  product.causal ? (range.count - 1) * length + i + 1 : range.count * length;
              seen += product.query_chunk == chunk && after_first >= 0 && after_first < visible;
            }
            const std::int64_t query_token = queries[static_cast<std::size_t>(chunk)].begin + i;
            const std::int64_t key_token =
                keys[static_cast<std::size_t>(key / length)].begin + key % length;
            wrong += seen != (key_token <= query_token ? 1 : 0);
          }
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("every other rank's keys are the same work", "[context_cut]") {
  for (int rank = 0; rank < 5; ++rank) {
    for (int key_rank = 0; key_rank < 5; ++key_rank) {
      std::int64_t chunks = 0;
      for (const ChunkProduct& product : chunk_products(rank, key_rank)) {
        chunks += product.key_chunks.count;
      }
      CHECK(chunks == (rank == key_rank ? 3 : 2));
    }
  }
}

TEST_CASE("sequences that cannot be cut are refused with what would work", "[context_cut]") {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::EndsWith;
  for (const ContextMode mode : {ContextMode::ring, ContextMode::ulysses, ContextMode::allgather}) {
    CAPTURE(name(mode));
    const bool any_heads = mode != ContextMode::ulysses;  // else the advice must fit these too
    CHECK_THAT(refusal(model_of(1000, 8, 8), mode, 3),
               ContainsSubstring("mesh.cp = 3 does not fit model.context = 1000") &&
                   EndsWith(any_heads ? "set mesh.cp to 2 or 4, or model.context to 996 or 1002"
                                      : "set mesh.cp to 2 or 4"));
    CHECK_THAT(refusal(model_of(7, 8, 8), mode, 2),
               ContainsSubstring("set mesh.cp to 1, or model.context to 4 or 8"));
    CHECK_THAT(refusal(model_of(6, 8, 8), mode, 4),
               EndsWith(any_heads ? "set mesh.cp to 3, or model.context to 8"
                                  : "set mesh.cp to 1, or model.context to 8"));
    CHECK(refusal(model_of(7, 8, 8), mode, 1).empty());
    CHECK(refusal(model_of(16, 8, 8), mode, 8).empty());
    CHECK_THAT(refusal(model_of(16, 8, 8), mode, 4, 8),
               ContainsSubstring("mesh.cp = 4 with mesh.tp = 8 is more than model.context = 16") &&
                   EndsWith(any_heads ? "set mesh.cp to 2" : "set mesh.cp to 1"));
    // 5 ranks would be few enough, but have no ten equal chunks of 48 tokens.
    CHECK_THAT(refusal(model_of(48, 9, 9), mode, 6, 9),
               EndsWith(any_heads ? "set mesh.cp to 4" : "set mesh.cp to 1"));
    // 4 ranks would have equal chunks, but too few tokens for 3 positions of the tp axis each.
    CHECK_THAT(
        refusal(model_of(8, 12, 12), mode, 5, 3),
        EndsWith(any_heads ? "set mesh.cp to 2, or model.context to 20" : "set mesh.cp to 2"));
  }
}

TEST_CASE("heads that cannot be dealt are refused for ulysses alone", "[context_cut]") {
  using Catch::Matchers::ContainsSubstring;
  const model::Architecture config = model_of(960, 12, 4);
  CHECK_THAT(refusal(config, ContextMode::ulysses, 6),
             ContainsSubstring("mesh.cp = 6 does not fit model.heads = 12 with model.kv_heads = 4 "
                               "and mesh.tp = 1") &&
                 ContainsSubstring("set mesh.cp to 4 or 12, or mesh.context_mode to \"ring\""));
  CHECK_THAT(refusal(config, ContextMode::ulysses, 5), ContainsSubstring("set mesh.cp to 4 or 12"));
  CHECK_THAT(refusal(config, ContextMode::ulysses, 24), ContainsSubstring("set mesh.cp to 12,"));
  CHECK_THAT(refusal(config, ContextMode::ulysses, 3, 2),
             ContainsSubstring("set mesh.cp to 2 or 6,"));
  CHECK(refusal(config, ContextMode::ulysses, 6, 2).empty());
  CHECK(refusal(config, ContextMode::ulysses, 3, 4).empty());  // three heads on a shared one
  for (const int cp : {1, 2, 4, 12}) {
    CHECK(refusal(config, ContextMode::ulysses, cp).empty());
  }
  CHECK(refusal(config, ContextMode::ring, 6).empty());
  CHECK(refusal(config, ContextMode::allgather, 6).empty());
}

}  // namespace
}  // namespace fourfold::parallel
