// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::device {

/// What a run that takes too much of a device's memory can do: for messages.
inline constexpr const char* memory_advice =
    "use a smaller train.micro_batch, train.recompute = \"full\", "
    "train.deterministic_attention = false, a higher mesh.zero, offload.optimizer or more ranks; "
    "`fourfold plan` shows what most of them take";

}  // namespace fourfold::device
