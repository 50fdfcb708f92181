// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/runfile/run_key.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace fourfold::runfile {
namespace {

/// In small letters with underscores. One name may stand several times: it means any of its keys.
constexpr std::array field_names{
    // Of the model.
    FieldName{"n_layer", "model.layers"},
    FieldName{"n_layers", "model.layers"},
    FieldName{"num_layers", "model.layers"},
    FieldName{"num_hidden_layers", "model.layers"},
    FieldName{"n_embd", "model.hidden"},
    FieldName{"d_model", "model.hidden"},
    FieldName{"hidden_size", "model.hidden"},
    FieldName{"n_head", "model.heads"},
    FieldName{"n_heads", "model.heads"},
    FieldName{"num_heads", "model.heads"},
    FieldName{"num_attention_heads", "model.heads"},
    FieldName{"n_kv_heads", "model.kv_heads"},
    FieldName{"num_query_groups", "model.kv_heads"},
    FieldName{"num_key_value_heads", "model.kv_heads"},
    FieldName{"kv_channels", "model.head_dim"},
    FieldName{"ffn_hidden_size", "model.ffn"},
    FieldName{"intermediate_size", "model.ffn"},
    FieldName{"block_size", "model.context"},
    FieldName{"seq_len", "model.context"},
    FieldName{"seq_length", "model.context"},
    FieldName{"max_seq_len", "model.context"},
    FieldName{"max_position_embeddings", "model.context"},
    FieldName{"n_positions", "model.context"},
    FieldName{"vocab_size", "model.vocab"},
    FieldName{"bias", "model.biases"},
    FieldName{"hidden_act", "model.activation"},
    FieldName{"normalization", "model.norm"},
    FieldName{"norm_eps", "model.norm_epsilon"},
    FieldName{"rms_norm_eps", "model.norm_epsilon"},
    FieldName{"layer_norm_epsilon", "model.norm_epsilon"},
    FieldName{"position_embedding_type", "model.positions"},
    FieldName{"rotary_base", "model.rope_theta"},
    FieldName{"qk_layernorm", "model.qk_norm"},
    FieldName{"attention_bias", "model.qkv_bias"},
    FieldName{"add_qkv_bias", "model.qkv_bias"},
    FieldName{"tie_word_embeddings", "model.tie_embeddings"},
    FieldName{"untie_embeddings_and_output_weights", "model.tie_embeddings"},
    FieldName{"hidden_dropout", "model.dropout"},
    // Of the mesh.
    FieldName{"tensor_model_parallel_size", "mesh.tp"},
    FieldName{"tensor_parallel_degree", "mesh.tp"},
    FieldName{"pipeline_model_parallel_size", "mesh.pp"},
    FieldName{"pipeline_parallel_degree", "mesh.pp"},
    FieldName{"context_parallel_size", "mesh.cp"},
    FieldName{"context_parallel_degree", "mesh.cp"},
    FieldName{"data_parallel_size", "mesh.dp"},
    FieldName{"data_parallel_replicate_degree", "mesh.dp"},
    FieldName{"data_parallel_shard_degree", "mesh.zero_group"},
    FieldName{"zero_stage", "mesh.zero"},
    FieldName{"use_distributed_optimizer", "mesh.zero"},
    FieldName{"pipeline_parallel_schedule", "mesh.schedule"},
    FieldName{"num_layers_per_virtual_pipeline_stage", "mesh.chunks"},
    // Of the steps.
    FieldName{"batch_size", "train.global_batch"},
    FieldName{"batch_size", "train.micro_batch"},
    FieldName{"train_batch_size", "train.global_batch"},
    FieldName{"global_batch_size", "train.global_batch"},
    FieldName{"gradient_accumulation_steps", "train.global_batch"},
    FieldName{"micro_batch_size", "train.micro_batch"},
    FieldName{"local_batch_size", "train.micro_batch"},
    FieldName{"per_device_train_batch_size", "train.micro_batch"},
    FieldName{"train_micro_batch_size_per_gpu", "train.micro_batch"},
    FieldName{"max_iters", "train.steps"},
    FieldName{"max_steps", "train.steps"},
    FieldName{"num_steps", "train.steps"},
    FieldName{"train_iters", "train.steps"},
    FieldName{"dtype", "train.precision"},
    FieldName{"bf16", "train.precision"},
    FieldName{"fp16", "train.precision"},
    FieldName{"initial_loss_scale", "train.loss_scale_initial"},
    FieldName{"initial_scale_power", "train.loss_scale_initial"},
    FieldName{"activation_checkpoint", "train.recompute"},
    FieldName{"activation_checkpointing", "train.recompute"},
    FieldName{"gradient_checkpointing", "train.recompute"},
    FieldName{"recompute_granularity", "train.recompute"},
    FieldName{"eval_interval", "train.eval_every_steps"},
    FieldName{"eval_steps", "train.eval_every_steps"},
    FieldName{"eval_iters", "train.eval_batches"},
    // Of the optimizer.
    FieldName{"learning_rate", "optim.lr"},
    FieldName{"lr_decay_style", "optim.schedule"},
    FieldName{"lr_scheduler_type", "optim.schedule"},
    FieldName{"warmup", "optim.warmup_steps"},
    FieldName{"warmup_iters", "optim.warmup_steps"},
    FieldName{"lr_warmup_iters", "optim.warmup_steps"},
    FieldName{"lr_decay_iters", "optim.decay_steps"},
    FieldName{"lr_wsd_decay_iters", "optim.cooldown_steps"},
    FieldName{"adam_beta1", "optim.beta1"},
    FieldName{"adam_beta2", "optim.beta2"},
    FieldName{"adam_eps", "optim.epsilon"},
    FieldName{"adam_epsilon", "optim.epsilon"},
    FieldName{"eps", "optim.epsilon"},
    FieldName{"sgd_momentum", "optim.momentum"},
    FieldName{"grad_clip", "optim.clip_norm"},
    FieldName{"clip_grad", "optim.clip_norm"},
    FieldName{"max_norm", "optim.clip_norm"},
    FieldName{"max_grad_norm", "optim.clip_norm"},
    FieldName{"gradient_clipping", "optim.clip_norm"},
    FieldName{"offload_optimizer", "offload.optimizer"},
    // Of the data.
    FieldName{"dataset", "data.train"},
    FieldName{"data_path", "data.train"},
    FieldName{"dataset_path", "data.train"},
    FieldName{"train_data_path", "data.train"},
    FieldName{"valid_data_path", "data.validation"},
    FieldName{"tokenizer_path", "data.tokenizer"},
    FieldName{"tokenizer_model", "data.tokenizer"},
    FieldName{"tokenizer_type", "data.tokenizer"},
    // Of checkpoints and the log.
    FieldName{"save", "checkpoint.dir"},
    FieldName{"ckpt", "checkpoint.dir"},
    FieldName{"save_interval", "checkpoint.every_steps"},
    FieldName{"save_steps", "checkpoint.every_steps"},
    FieldName{"save_total_limit", "checkpoint.keep_last"},
    FieldName{"keep_latest_k", "checkpoint.keep_last"},
    FieldName{"load", "checkpoint.resume"},
    FieldName{"init_from", "checkpoint.resume"},
    FieldName{"resume_from_checkpoint", "checkpoint.resume"},
    FieldName{"async_save", "checkpoint.async"},
    FieldName{"async_mode", "checkpoint.async"},
    FieldName{"out_dir", "log.dir"},
    FieldName{"output_dir", "log.dir"},
    FieldName{"logging_dir", "log.dir"},
    FieldName{"tensorboard_dir", "log.dir"},
    FieldName{"log_interval", "log.every_steps"},
    FieldName{"log_freq", "log.every_steps"},
    FieldName{"logging_steps", "log.every_steps"},
    FieldName{"distributed_timeout_minutes", "watchdog.deadline_s"},
};

}  // namespace

std::span<const FieldName> all_field_names() noexcept {
  return field_names;
}

std::vector<std::string> keys_meant_by(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return letter == '-' ? '_' : static_cast<char>(std::tolower(letter));
  });
  std::vector<std::string> keys;
  for (const FieldName& other : field_names) {
    if (other.name == name) {
      keys.emplace_back(other.key);
    }
  }
  return keys;
}

}  // namespace fourfold::runfile
