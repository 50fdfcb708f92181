// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whoever observes a model is shown all of its products: as many multiplications as the formula of
/// PaLM's appendix B counts, and nobody is shown any who does not ask.
#include "small_models.hpp"

#include <fourfold/model/matmul_observer.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <iterator>
#include <set>
#include <string>

using fourfold::kernels::AttentionGradients;
using fourfold::model::AttentionMatmul;
using fourfold::model::Family;
using fourfold::model::Gradients;
using fourfold::model::LinearMatmul;
using fourfold::model::ParallelHooks;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::OwnedBatch;
using fourfold::model_test::small;

namespace device = fourfold::device;
namespace model = fourfold::model;

using namespace fourfold::model_test::usual;

namespace {

/// Counts what it is shown.
class Counter : public model::MatmulObserver {
 public:
  void enter_attention(int layer) override { attention_of.insert(layer); }
  void before(const LinearMatmul& /*product*/, device::StreamRef /*stream*/) override { ++begun; }
  void after(const LinearMatmul& product, device::StreamRef /*stream*/) override {
    ++ended;
    names.emplace(product.layer);
    const bool of_weights = product.pass == LinearMatmul::Pass::backward_weight;
    multiplications += product.left.dim(0) * (of_weights ? product.left.dim(1) : 1) *
                       (of_weights ? 1 : product.right.dim(0)) * product.right.dim(1);
  }
  void before(const AttentionMatmul& /*product*/, device::StreamRef /*stream*/) override {
    ++begun;
  }
  void after(const AttentionMatmul& /*product*/, device::StreamRef /*stream*/) override {
    ++ended;
    ++attentions;
  }
  void before(const AttentionGradients& /*product*/, device::StreamRef /*stream*/) override {
    ++begun;
  }
  void after(const AttentionGradients& /*product*/, device::StreamRef /*stream*/) override {
    ++ended;
    ++attention_gradients;
  }

  std::int64_t begun = 0;
  std::int64_t ended = 0;
  std::int64_t multiplications = 0;
  int attentions = 0;
  int attention_gradients = 0;
  std::set<int> attention_of;
  std::set<std::string> names;
};

}  // namespace

TEST_CASE("an observer is shown every product of a model", "[matmul_observer]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const model::Architecture config = small(family);
  ParallelHooks hooks;
  Model observed(config, model::all_units(config), options_for(sequences, tokens), hooks);
  const OwnedBatch batch(config, sequences, tokens, 1);
  Counter counter;
  hooks.show_products_to(&counter);
  observed.stage->forward_train(0, batch.view(), scale, stream);
  observed.stage->backward(0, Gradients::complete, stream);
  hooks.show_products_to(nullptr);
  observed.stage->forward_evaluate(0, batch.view(), stream);
  const std::int64_t gate = family == Family::llama ? 3 : 2;
  const std::int64_t of_block = config.hidden * config.attention.head_dim *
                                    (2 * config.attention.heads + 2 * config.attention.kv_heads) +
                                gate * config.hidden * config.feed_forward.width;
  const std::int64_t weights = config.layers * of_block + config.hidden * config.vocab;
  CHECK(counter.multiplications == 3 * weights * sequences * tokens);
  CHECK(counter.attentions == config.layers);
  CHECK(counter.attention_gradients == config.layers);
  CHECK(std::ssize(counter.attention_of) == config.layers);
  CHECK(counter.begun == counter.ended);
  CHECK(counter.ended == config.layers * (3 * 4 + 2) + 3);
  CHECK(counter.names.contains("layers.0.attn.q_proj/k_proj/v_proj"));
  CHECK(counter.names.contains(family == Family::llama ? "layers.0.mlp.gate_proj/up_proj"
                                                       : "layers.0.mlp.up_proj"));
  CHECK(std::ssize(counter.names) == config.layers * 4 + 1);
}
