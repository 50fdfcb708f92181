// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention through cuDNN's graphs, which its frontend describes. No other file sees the frontend:
/// it takes most of a minute to compile.
#include "attention_backend.hpp"
#include "runtime/scratch.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/device/device.hpp>

#include <cuda_check.hpp>
#include <cudnn_frontend.h>
#include <fmt/format.h>
#include <native_stream.hpp>

#include <array>
#include <bit>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

namespace fourfold::kernels {
namespace {

namespace graph = cudnn_frontend::graph;
using graph::Graph;
using graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

/// From here on it is worth a line in the log that a plan takes more than planned.
constexpr std::int64_t large_bytes = std::int64_t{16} << 20;

/// Names of the operands in a graph, in the order in which they are handed to it.
enum Operand : std::int64_t { q_id = 1, k_id, v_id, out_id, lse_id, dout_id, dq_id, dk_id, dv_id };

Tensor_attributes& lay_out(Tensor_attributes& tensor, Operand id, const ConstHeads& x,
                           std::int64_t tokens, std::int64_t heads, const AttentionShape& shape) {
  // One sequence may have any stride, which cuDNN would look at.
  const std::int64_t batch_stride = shape.batch == 1 ? tokens * x.token_stride : x.batch_stride;
  return tensor.set_uid(id)
      .set_dim({shape.batch, heads, tokens, shape.head_dim})
      .set_stride({batch_stride, shape.head_dim, x.token_stride, 1});
}

Tensor_attributes& lay_out_lse(Tensor_attributes& tensor, const AttentionShape& shape) {
  return tensor.set_uid(lse_id)
      .set_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_dim({shape.batch, shape.heads, shape.query_tokens, 1})
      .set_stride({shape.heads * shape.query_tokens, shape.query_tokens, 1, 1});
}

/// What the options of both passes have in common.
template <class Options>
Options options_of(const AttentionShape& shape) {
  Options options;
  options.set_attn_scale(shape.scale);
  const AttentionMask mask = mask_of(shape);
  if (mask != AttentionMask::none) {
    options
        .set_diagonal_alignment(mask == AttentionMask::top_left
                                    ? cudnn_frontend::DiagonalAlignment_t::TOP_LEFT
                                    : cudnn_frontend::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
  }
  return options;
}

/// A graph's inputs: tensors of queries and of keys.
struct Inputs {
  Graph& graph;
  const AttentionShape& shape;

  Tensor queries(Operand id, const ConstHeads& x) const {
    Tensor_attributes tensor;
    return graph.tensor(lay_out(tensor, id, x, shape.query_tokens, shape.heads, shape));
  }
  Tensor keys(Operand id, const ConstHeads& x) const {
    Tensor_attributes tensor;
    return graph.tensor(lay_out(tensor, id, x, shape.key_tokens, shape.kv_heads, shape));
  }
};

void describe_forward(Graph& graph, const AttentionCall& call) {
  const AttentionShape& shape = call.shape;
  const Inputs in{graph, shape};
  auto options = options_of<graph::SDPA_attributes>(shape);
  options.set_generate_stats(true);
  const auto [out, lse] = graph.sdpa(in.queries(q_id, call.q), in.keys(k_id, call.k),
                                     in.keys(v_id, call.v), std::move(options));
  lay_out(*out, out_id, call.out, shape.query_tokens, shape.heads, shape).set_output(true);
  lay_out_lse(*lse, shape).set_output(true);
}

void describe_backward(Graph& graph, const AttentionCall& call) {
  const AttentionShape& shape = call.shape;
  const Inputs in{graph, shape};
  auto options = options_of<graph::SDPA_backward_attributes>(shape);
  options.set_deterministic_algorithm(shape.deterministic);
  Tensor_attributes lse;
  const auto [dq, dk, dv] =
      graph.sdpa_backward(in.queries(q_id, call.q), in.keys(k_id, call.k), in.keys(v_id, call.v),
                          in.queries(out_id, call.out), in.queries(dout_id, call.dout),
                          graph.tensor(lay_out_lse(lse, shape)), std::move(options));
  lay_out(*dq, dq_id, call.dq, shape.query_tokens, shape.heads, shape).set_output(true);
  lay_out(*dk, dk_id, call.dk, shape.key_tokens, shape.kv_heads, shape).set_output(true);
  lay_out(*dv, dv_id, call.dv, shape.key_tokens, shape.kv_heads, shape).set_output(true);
}

std::unique_ptr<Graph> describe(const AttentionCall& call, int compute_capability) {
  auto graph = std::make_unique<Graph>();
  graph
      ->set_io_data_type(call.q.dtype == DType::bf16 ? cudnn_frontend::DataType_t::BFLOAT16
                                                     : cudnn_frontend::DataType_t::HALF)
      .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_sm_version(compute_capability);
  if (call.is_backward) {
    describe_backward(*graph, call);
  } else {
    describe_forward(*graph, call);
  }
  return graph;
}

/// Of what the frontend says the first line, which names the reason.
std::string reason(cudnn_frontend::error_t status) {
  const std::string text = status.get_message();
  return text.substr(0, text.find('\n'));
}

/// All that a plan depends on: the call's shape and pass, then two strides of each operand.
constexpr std::size_t shape_numbers = 11;
constexpr std::size_t most_operands = 8;  // of AttentionCall::operands()
using Key = std::array<std::int64_t, shape_numbers + 2 * most_operands>;
Key key_of(const AttentionCall& call) {
  const AttentionShape& shape = call.shape;
  Key key{call.is_backward ? 1 : 0,
          static_cast<std::int64_t>(call.q.dtype),
          shape.batch,
          shape.query_tokens,
          shape.key_tokens,
          shape.heads,
          shape.kv_heads,
          shape.head_dim,
          std::bit_cast<std::int32_t>(shape.scale),
          static_cast<std::int64_t>(mask_of(shape)),
          shape.deterministic ? 1 : 0};
  std::size_t next = shape_numbers;
  for (const ConstHeads& x : call.operands()) {
    key.at(next++) = x.batch_stride;
    key.at(next++) = x.token_stride;
  }
  return key;
}

struct Plan {
  std::unique_ptr<Graph> graph;
  std::size_t workspace_bytes = 0;
};

/// cuDNN as one host thread uses it.
class Session {
 public:
  Session() : compute_capability_(device::device_facts().compute_capability) {
    const CudnnLibrary& library = cudnn_library();
    std::string defect = library.defect;
    if (defect.empty()) {
      const cudnnStatus_t status = cudnnCreate(&handle_);
      if (status != CUDNN_STATUS_SUCCESS) {
        handle_ = nullptr;
        defect = fmt::format("cuDNN does not start ({}); look whether it fits the driver",
                             cudnnGetErrorString(status));
      }
    }
    if (!defect.empty()) {
      log::warning("attention falls back to a slow kernel: " + defect);
    }
  }
  ~Session() {
    plans_.clear();
    if (handle_ != nullptr) {
      std::ignore = cudnnDestroy(handle_);
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool would_run(const AttentionCall& call) { return usable_plan_of(call) != nullptr; }

  bool run(const AttentionCall& call, device::StreamRef stream) {
    const Plan* const plan = usable_plan_of(call);
    if (plan == nullptr) {
      return false;
    }
    use(stream);
    std::array<void*, 9> operands = {pointer(call.q),   pointer(call.k),       pointer(call.v),
                                     pointer(call.out), pointer(call.lse_BNT), pointer(call.dout),
                                     pointer(call.dq),  pointer(call.dk),      pointer(call.dv)};
    const cudnn_frontend::error_t status = plan->graph->execute(
        handle_, operands.data(), call.is_backward ? 9 : 5, scratch(plan->workspace_bytes, stream));
    if (status.is_bad()) {
      const std::string why = reason(status);
      const bool is_memory = why.find("ALLOC_FAILED") != why.npos;
      throw SystemError(is_memory ? ExitCode::config : ExitCode::node_fault,
                        fmt::format("cuDNN: attention failed ({}); {}", why,
                                    is_memory ? device::out_of_memory_advice()
                                              : "leave this node out; its kernel log says more"));
    }
    return true;
  }

 private:
  /// The frontend takes what it only reads as void* too.
  static void* pointer(const void* data) { return const_cast<void*>(data); }
  static void* pointer(const ConstHeads& x) { return pointer(x.data); }

  /// Null when the library does not serve.
  const Plan* usable_plan_of(const AttentionCall& call) {
    if (handle_ == nullptr || !vendor_serves(call, compute_capability_)) {
      return nullptr;
    }
    const Plan& plan = plan_of(call);
    return plan.graph ? &plan : nullptr;
  }

  const Plan& plan_of(const AttentionCall& call) {
    const auto [place, is_new] = plans_.try_emplace(key_of(call));
    if (is_new) {
      place->second = make_plan(call);
    }
    return place->second;
  }

  Plan make_plan(const AttentionCall& call) {
    Plan plan{describe(call, compute_capability_)};
    cudnn_frontend::error_t status = plan.graph->build(handle_, {cudnn_frontend::HeurMode_t::A});
    std::int64_t bytes = 0;
    if (status.is_good()) {
      status = plan.graph->get_workspace_size(bytes);
    }
    if (status.is_bad()) {
      log::warning(fmt::format(
          "attention{} over {} queries and {} keys, {} x {} features, falls back to a slow kernel: "
          "cuDNN refuses it ({}); take a newer cuDNN",
          call.is_backward ? "'s backward pass" : "", call.shape.query_tokens,
          call.shape.key_tokens, call.shape.heads, call.shape.head_dim, reason(status)));
      return {};
    }
    plan.workspace_bytes = bytes;
    const std::int64_t planned =
        call.is_backward ? attention_workspace_bytes(call.shape, compute_capability_) : 0;
    if (bytes - planned >= large_bytes) {
      log::info(fmt::format(
          "attention{} takes {:.1f} MiB of scratch memory, {:.1f} more than "
          "planned: this cuDNN wants more than 9.19 does",
          call.is_backward ? "'s backward pass" : "", static_cast<double>(bytes) / 1048576,
          static_cast<double>(bytes - planned) / 1048576));
    }
    return plan;
  }

  void use(device::StreamRef stream) {
    if (stream != stream_ || !has_stream_) {
      const cudnnStatus_t status = cudnnSetStream(handle_, native(stream));
      if (status != CUDNN_STATUS_SUCCESS) {
        throw SystemError(ExitCode::internal,
                          fmt::format("cuDNN: cudnnSetStream failed ({}); this is a bug: report it",
                                      cudnnGetErrorString(status)));
      }
      stream_ = stream;
      has_stream_ = true;
    }
  }

  int compute_capability_;
  cudnnHandle_t handle_ = nullptr;
  bool has_stream_ = false;
  device::StreamRef stream_;
  std::map<Key, Plan> plans_;
};

Session& session() {
  thread_local Session the_threads;
  return the_threads;
}

}  // namespace

bool vendor_would_serve(const AttentionCall& call) {
  return session().would_run(call);
}

bool vendor_attention(const AttentionCall& call, device::StreamRef stream) {
  if (!session().run(call, stream)) {
    return false;
  }
  finish_if_default(stream);
  return true;
}

std::string vendor_attention_name() {
  const CudnnLibrary& library = cudnn_library();
  return library.defect.empty() ? fmt::format("cuDNN {}.{}.{}", library.version / 10000,
                                              library.version / 100 % 100, library.version % 100)
                                : "portable attention";
}

std::string refused_by_cudnn(const AttentionCall& call, const std::string& device_json,
                             int compute_capability) {
  auto device = std::make_shared<cudnn_frontend::DeviceProperties>();
  cudnn_frontend::error_t status =
      device->deserialize(std::vector<std::uint8_t>(device_json.begin(), device_json.end()));
  const std::unique_ptr<Graph> graph = describe(call, compute_capability);
  graph->set_device_properties(device);
  const auto and_then = [&](auto step) {
    if (status.is_good()) {
      status = step();
    }
  };
  and_then([&] { return graph->validate(); });
  and_then([&] { return graph->build_operation_graph(); });
  and_then([&] { return graph->create_execution_plans({cudnn_frontend::HeurMode_t::A}); });
  and_then([&] { return graph->check_support(); });
  return status.is_good() ? "" : reason(status);
}

}  // namespace fourfold::kernels
