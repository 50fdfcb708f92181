// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_writer.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/safetensors.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/export.hpp>
#include <fourfold/model_conversion/hf_config.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <map>
#include <system_error>
#include <utility>

namespace fourfold::model_conversion {
namespace {

std::int64_t padded(std::int64_t rows, std::int64_t multiple) {
  return (rows + multiple - 1) / multiple * multiple;
}

std::int64_t bytes_of(const ExternalTensor& tensor, DType dtype) {
  return tensor.shape.elements() * size_in_bytes(dtype);
}

/// The tensors in order, a new file begun before one would be too large.
std::vector<ExternalFile> in_files(std::vector<ExternalTensor> tensors,
                                   const ExportOptions& options) {
  std::vector<ExternalFile> files;
  for (ExternalTensor& tensor : tensors) {
    const std::int64_t bytes = bytes_of(tensor, options.dtype);
    if (files.empty() || files.back().bytes + bytes > options.shard_bytes) {
      files.emplace_back();
    }
    files.back().bytes += bytes;
    files.back().tensors.push_back(std::move(tensor));
  }
  return files;
}

std::string header_of(const ExternalFile& file, DType dtype) {
  std::vector<io::ArrayToWrite> arrays;
  arrays.reserve(file.tensors.size());
  for (const ExternalTensor& tensor : file.tensors) {
    arrays.push_back({tensor.name, dtype, tensor.shape});
  }
  return io::safetensors_header(arrays, {{"format", "pt"}});  // transformers insists on it
}

std::string index_of(const std::vector<ExternalFile>& files, DType dtype) {
  std::map<std::string, std::string> file_of;
  std::int64_t parameters = 0;
  for (const ExternalFile& file : files) {
    for (const ExternalTensor& tensor : file.tensors) {
      file_of.emplace(tensor.name, file.name);
      parameters += tensor.shape.elements();
    }
  }
  return io::safetensors_index(file_of, parameters * size_in_bytes(dtype), parameters);
}

[[noreturn]] void unlike_llmc(const char* key, const std::string& value, const std::string& needs) {
  throw UserError(ExitCode::config,
                  format_message("{} = {} cannot be exported to llm.c ({}); use --format hf", key,
                                 value, needs));
}

void refuse_unlike_llmc(const model::Architecture& config, DType dtype) {
  if (family_of(config) != model::Family::gpt2) {
    unlike_llmc("model.family", family_name(config), "its models are gpt2");
  }
  if (config.attention.qk_norm) {
    unlike_llmc("model.qk_norm", "true", "it has no norms of queries and keys");
  }
  if (!config.tie_embeddings) {
    unlike_llmc("model.tie_embeddings", "false", "its head is the embedding");
  }
  if (config.attention.kv_heads != config.attention.heads) {
    unlike_llmc("model.kv_heads", std::to_string(config.attention.kv_heads),
                "it has as many as heads");
  }
  if (config.attention.heads * config.attention.head_dim != config.hidden) {
    unlike_llmc("model.head_dim", std::to_string(config.attention.head_dim),
                "it has hidden / heads");
  }
  if (config.feed_forward.width != 4 * config.hidden) {
    unlike_llmc("model.ffn", std::to_string(config.feed_forward.width), "it has 4 * hidden");
  }
  if (config.norm.epsilon != 1e-5) {
    unlike_llmc("model.norm_epsilon", format_message("{}", config.norm.epsilon), "it has 1e-5");
  }
  if (dtype == DType::f16) {
    unlike_llmc("--dtype", "f16", "its files are f32 or bf16");
  }
}

void write_file(const ExternalFile& file, const std::filesystem::path& path, ExternalWriter& writer,
                const ExternalWriter::Sink& written) {
  io::AtomicFile output(path);
  output.write(file.head);
  for (const ExternalTensor& tensor : file.tensors) {
    writer.write(tensor, [&](std::span<const std::byte> bytes) {
      output.write(bytes);
      written(bytes);
    });
  }
  output.publish_as_new();
}

void refuse_existing(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() !=
      std::filesystem::file_type::not_found) {
    throw UserError(
        ExitCode::cannot_write,
        format_message("{}: is there already (an export replaces nothing); choose another name",
                       path.string()));
  }
}

/// Transformers splits text in Qwen 2's way for every folder of that model type, whatever the files
/// of the tokenizer say (5.24).
bool is_split_otherwise(const model::Architecture& config, const HfTokenizer& tokenizer) {
  constexpr std::string_view qwen2s = R"(|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*)";
  const auto file =
      std::ranges::find(tokenizer.files, std::filesystem::path("tokenizer.json"), &FileBytes::path);
  return config.attention.qkv_bias && file != tokenizer.files.end() &&
         file->bytes.find(qwen2s) == std::string::npos;
}

std::vector<std::string> hf_notes(const model::Architecture& config, std::int64_t vocab_rows,
                                  const HfTokenizer& tokenizer) {
  std::vector<std::string> notes;
  if (vocab_rows > config.vocab) {
    notes.push_back(format_message(
        "the vocabulary is filled with {} rows of zeros, whose logits are 0: losses and samples of "
        "other programs count them; only the first {} rows are the model's",
        vocab_rows - config.vocab, config.vocab));
  }
  if (is_split_otherwise(config, tokenizer)) {
    notes.emplace_back(
        "AutoTokenizer of transformers 5 splits text as Qwen 2 does for every folder of its model "
        "type, and may make other tokens than this model was trained on; "
        "PreTrainedTokenizerFast.from_pretrained reads tokenizer.json as it is");
  }
  return notes;
}

}  // namespace

std::int64_t ExportPlan::bytes() const {
  std::int64_t sum = 0;
  for (const ExternalFile& file : files) {
    sum += file.bytes;
  }
  return sum;
}

ExportPlan plan_hf_export(const model::Architecture& config, const ExportOptions& options,
                          const HfTokenizer& tokenizer) {
  const std::int64_t multiple = options.vocab_multiple == 0 ? 1 : options.vocab_multiple;
  const std::int64_t vocab_rows = padded(config.vocab, multiple);
  ExportPlan plan{.dtype = options.dtype, .files = {}};
  plan.notes = hf_notes(config, vocab_rows, tokenizer);
  plan.texts.push_back(
      {"config.json", hf_config_json(config, vocab_rows, options.dtype, tokenizer.special)});
  if (!tokenizer.special.eos.empty()) {
    plan.texts.push_back({"generation_config.json", hf_generation_config_json(tokenizer.special)});
  }
  plan.texts.insert(plan.texts.end(), tokenizer.files.begin(), tokenizer.files.end());
  plan.files = in_files(hf_tensors(config, vocab_rows, config.context), options);
  for (std::size_t i = 0; i < plan.files.size(); ++i) {
    ExternalFile& file = plan.files[i];
    file.name = io::safetensors_file_name(i, plan.files.size());
    file.head = header_of(file, options.dtype);
    file.bytes += file.head.size();
  }
  if (plan.files.size() > 1) {
    plan.texts.push_back({io::safetensors_index_name, index_of(plan.files, options.dtype)});
  }
  return plan;
}

ExportPlan plan_llmc_export(const model::Architecture& config, const ExportOptions& options) {
  refuse_unlike_llmc(config, options.dtype);
  const std::int64_t multiple = options.vocab_multiple == 0 ? 128 : options.vocab_multiple;
  const io::LlmcSizes sizes{.context = config.context,
                            .vocab = config.vocab,
                            .padded_vocab = padded(config.vocab, multiple),
                            .layers = config.layers,
                            .heads = config.attention.heads,
                            .hidden = config.hidden};
  ExternalFile file{.name = {},
                    .head = io::llmc_header(sizes, options.dtype),
                    .tensors = llmc_tensors(config, sizes)};
  file.bytes = file.head.size();
  for (const ExternalTensor& tensor : file.tensors) {
    file.bytes += bytes_of(tensor, options.dtype);
  }
  ExportPlan plan{.is_folder = false, .dtype = options.dtype, .files = {}};
  plan.files.push_back(std::move(file));
  return plan;
}

model::Architecture model_of(const io::Checkpoint& checkpoint) {
  const model::Architecture config =
      runfile::parse_saved_config(checkpoint.scalars().text(runfile::config_text_name),
                                  (checkpoint.path() / runfile::config_text_name).string())
          .model.resolved();
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    const io::StoredTensor* const tensor = checkpoint.find({spec.name, io::TensorState::master});
    if (tensor == nullptr || !(tensor->shape == spec.shape) || tensor->dtype != DType::f32) {
      throw UserError(
          ExitCode::data_corrupt,
          format_message("{}: {}/master is {}, and the run file in it has a model with one of "
                         "shape {}; choose another step",
                         checkpoint.path().string(), spec.name,
                         tensor == nullptr ? "missing" : tensor->shape.str(), spec.shape.str()));
    }
  }
  return config;
}

void write_export(const ExportPlan& plan, io::TensorSource& source,
                  const std::filesystem::path& path, std::int64_t memory_bytes,
                  const std::function<void(std::int64_t done_bytes)>& progress) {
  ExternalWriter writer(source, plan.dtype, memory_bytes);
  std::int64_t done = 0;
  const auto written = [&](std::span<const std::byte> bytes) {
    done += bytes.size();
    progress(done);
  };
  refuse_existing(path);
  if (!plan.is_folder) {
    write_file(plan.files.front(), path, writer, written);
    return;
  }
  io::NewFolder folder(path, plan.bytes());
  for (const ExternalFile& file : plan.files) {
    write_file(file, folder.path() / file.name, writer, written);
  }
  for (const FileBytes& text : plan.texts) {
    io::AtomicFile output(folder.path() / text.path);
    output.write(text.bytes);
    output.publish();
  }
  folder.publish();
}

}  // namespace fourfold::model_conversion
