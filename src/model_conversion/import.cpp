// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_writer.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/io/llmc_checkpoint.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/io/safetensors.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/hf_config.hpp>
#include <fourfold/model_conversion/import.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

namespace fourfold::model_conversion {
namespace {

constexpr std::uint64_t longest_config = std::uint64_t{16} << 20;

/// `rows` cut to `wanted`. @throws UserError when there are fewer
void cut(std::int64_t& rows, std::int64_t wanted, const char* option, const char* of_what) {
  if (wanted > rows) {
    throw UserError(ExitCode::config,
                    format_message("{} {} is more than the model has ({} {}); give at most {}",
                                   option, wanted, rows, of_what, rows));
  }
  rows = wanted > 0 ? wanted : rows;
}

void cut(model::Architecture& config, const ImportOptions& options) {
  cut(config.vocab, options.vocab, "--vocab", "rows");
  cut(config.context, options.context, "--context", "positions");
}

/// The array of a name of ours for Hugging Face's; published GPT-2s lack "transformer.", and models
/// without a head "model.".
const io::StoredArray* find_array(const io::SafetensorsFolder& folder, const std::string& name) {
  if (const io::StoredArray* const array = folder.find(name)) {
    return array;
  }
  return name.starts_with("lm_head.") ? nullptr : folder.find(name.substr(name.find('.') + 1));
}

/// Buffers that older versions of transformers saved with the weights: masks of the causal order,
/// and wavelengths.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

/// Elements of an array, rounded to `dtype`; nothing when one overflows it.
std::optional<std::vector<std::byte>> rounded(const io::StoredArray& array, std::int64_t begin,
                                              std::int64_t count, DType dtype) {
  const std::size_t size = size_in_bytes(*array.dtype());
  std::vector<std::byte> stored(count * size);
  array.read(begin * size, stored);
  if (dtype == *array.dtype()) {
    return stored;
  }
  std::vector<float> values(count);
  std::vector<std::byte> elements(values.size() * size_in_bytes(dtype));
  const bool overflows =
      widen(stored, *array.dtype(), values).has_value() || narrow(values, dtype, elements);
  return overflows ? std::nullopt : std::optional(std::move(elements));
}

/// Whether two arrays hold the same values, rounded to the narrower of their types where those
/// differ: a head that was saved in another type than the embedding that it is tied to.
bool same_values(const io::StoredArray& a, const io::StoredArray& b) {
  if (!a.dtype() || !b.dtype() || !is_floating(*a.dtype()) || !is_floating(*b.dtype()) ||
      !(a.shape() == b.shape())) {
    return false;
  }
  const DType narrower =
      size_in_bytes(*a.dtype()) <= size_in_bytes(*b.dtype()) ? *a.dtype() : *b.dtype();
  constexpr std::int64_t piece = std::int64_t{1} << 18;
  const std::int64_t total = a.shape().elements();
  for (std::int64_t begin = 0; begin < total; begin += piece) {
    const std::int64_t count = std::min(piece, total - begin);
    const auto of_a = rounded(a, begin, count, narrower);
    if (!of_a || of_a != rounded(b, begin, count, narrower)) {
      return false;
    }
  }
  return true;
}

/// The number of the block that a tensor belongs to: 7 of "model.layers.7.mlp.up_proj.weight".
std::optional<std::int64_t> layer_of(std::string_view name) {
  for (const std::string_view mark : {"layers.", "h."}) {
    const std::size_t at = name.find(mark);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) {
      continue;
    }
    const char* const begin = name.data() + at + mark.size();
    std::int64_t layer = 0;
    const auto [end, failure] = std::from_chars(begin, name.data() + name.size(), layer);
    if (failure == std::errc() && end != name.data() + name.size() && *end == '.') {
      return layer;
    }
  }
  return std::nullopt;
}

/// The number of blocks is in config.json and in the names of tensors.
void refuse_more_layers(const std::filesystem::path& path, const model::Architecture& config,
                        std::span<const std::string> others) {
  for (const std::string& name : others) {
    if (const auto layer = layer_of(name); layer && *layer >= config.layers) {
      throw UserError(
          ExitCode::config,
          format_message(
              "{}: config.json says {} = {}, and the files hold {}; correct the one that is wrong",
              path.string(), hf_class_of(config) == HfClass::gpt2 ? "n_layer" : "num_hidden_layers",
              config.layers, name));
    }
  }
}

/// What is in the files must be what the model has: a head that is left out would make another
/// model without a word.
void refuse_others(const io::SafetensorsFolder& folder, const std::filesystem::path& path,
                   const model::Architecture& config, const std::set<std::string>& used) {
  std::vector<std::string> others;
  for (const io::StoredArray& array : folder.arrays()) {
    const bool is_head = array.name() == "lm_head.weight" && config.tie_embeddings;
    if (is_head) {
      const bool is_gpt2 = hf_class_of(config) == HfClass::gpt2;
      const io::StoredArray* const embedding =
          find_array(folder, is_gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight");
      if (!same_values(array, *embedding)) {
        throw UserError(
            ExitCode::config,
            format_message("{}: lm_head.weight differs from {}, which config.json ties it to; set "
                           "tie_word_embeddings to false there, or remove the one that is wrong",
                           path.string(), embedding->name()));
      }
    } else if (!used.contains(array.name()) && !is_buffer(array.name())) {
      others.push_back(printable(array.name()));
    }
  }
  refuse_more_layers(path, config, others);
  if (!others.empty()) {
    const std::size_t count = others.size();
    others.resize(std::min<std::size_t>(count, 5));
    throw UserError(ExitCode::config,
                    format_message("{}: holds {} tensors that a {} does not have ({}{}): it is "
                                   "another kind of model, which fourfold does not compute",
                                   path.string(), count, family_name(config),
                                   fmt::join(others, ", "), count > others.size() ? ", ..." : ""));
  }
}

/// What transformers adds to the weights when it opens the folder, where its PEFT is installed.
void refuse_adapter(const std::filesystem::path& folder) {
  const std::filesystem::path adapter = folder / "adapter_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(adapter, ignored)) {
    throw UserError(ExitCode::config,
                    format_message("{}: the folder holds an adapter beside the model, and an "
                                   "import takes the model alone; merge it first (merge_and_unload "
                                   "of PEFT, then save_pretrained), or import a folder without it",
                                   adapter.string()));
  }
}

}  // namespace

ExternalModel open_hf(const std::filesystem::path& folder, const ImportOptions& options) {
  const std::filesystem::path file = folder / "config.json";
  HfModel model = parse_hf_config(io::text_of_file(file, longest_config), file.string());
  const std::int64_t vocab_rows = model.config.vocab;
  const std::int64_t position_rows = model.config.context;
  cut(model.config, options);
  refuse_adapter(folder);
  const io::SafetensorsFolder arrays(folder);
  if (model.config.layers > std::ssize(arrays.arrays())) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: has {} layers, and the folder {} tensors; configuration "
                                   "and weights are not of one model",
                                   file.string(), model.config.layers, arrays.arrays().size()));
  }
  std::set<std::string> used;
  ExternalModel result{model.config, std::move(model.notes), nullptr};
  result.source = std::make_unique<ExternalSource>(
      hf_tensors(model.config, vocab_rows, position_rows), [&](const std::string& name) {
        const io::StoredArray* const array = find_array(arrays, name);
        if (array != nullptr) {
          used.insert(array->name());
        }
        return array;
      });
  refuse_others(arrays, folder, model.config, used);
  return result;
}

ExternalModel open_llmc(const std::filesystem::path& file, const ImportOptions& options) {
  const io::LlmcCheckpoint checkpoint(file);
  const io::LlmcSizes& sizes = checkpoint.sizes();
  model::Architecture config;
  set_family(config, model::Family::gpt2);
  config.layers = sizes.layers;
  config.hidden = sizes.hidden;
  config.attention.heads = sizes.heads;
  config.vocab = sizes.vocab;
  config.context = sizes.context;
  cut(config, options);
  ExternalModel result{config.resolved(), {}, nullptr};
  result.source = std::make_unique<ExternalSource>(
      llmc_tensors(result.config, sizes), [&](const std::string& name) {
        return &*std::ranges::find(checkpoint.arrays(), name, &io::StoredArray::name);
      });
  return result;
}

std::vector<io::TensorLayout> layouts_of(const model::Architecture& config) {
  std::vector<io::TensorLayout> layouts;
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    layouts.push_back(io::TensorLayout::replicated({spec.name, io::TensorState::master}, DType::f32,
                                                   spec.shape, 1));
  }
  return layouts;
}

io::CheckpointScalars scalars_of(const model::Architecture& config, const std::string& tokenizer) {
  runfile::RunConfig run;
  run.model = config;
  run.data.tokenizer = tokenizer.empty() ? runfile::unknown_tokenizer_name : tokenizer;
  runfile::Origins origins;
  runfile::resolve(run, origins);
  io::CheckpointScalars scalars;
  scalars.integers = {{runfile::consumed_samples_name, 0}, {runfile::consumed_tokens_name, 0}};
  scalars.texts = {{runfile::config_text_name, runfile::to_toml(run)}};
  return scalars;
}

}  // namespace fourfold::model_conversion
