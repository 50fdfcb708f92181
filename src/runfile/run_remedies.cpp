// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/runfile/run_remedies.hpp>

namespace fourfold::runfile {

Remedies run_remedies() {
  return {.host_memory =
              "use a smaller model, model.context or train.micro_batch, leave less to the host "
              "(offload.optimizer, offload.activations), or more ranks on more hosts; `fourfold "
              "plan` shows what most of them take",
          .device_memory =
              "use a smaller train.micro_batch, train.recompute = \"full\", "
              "train.deterministic_attention = false, a higher mesh.zero, offload.optimizer or "
              "more ranks; `fourfold plan` shows what most of them take"};
}

}  // namespace fourfold::runfile
