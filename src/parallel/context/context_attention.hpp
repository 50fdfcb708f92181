// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/parallel/context_parallel.hpp>

#include <memory>

namespace fourfold::parallel {

// The modes of context_parallel(), each in a file of its own. @pre cp has several ranks
std::unique_ptr<ContextParallel> ring_attention(comm::Communicator& cp,
                                                const ContextParallelOptions& options,
                                                device::Arena& arena);
std::unique_ptr<ContextParallel> ulysses_attention(comm::Communicator& cp,
                                                   const ContextParallelOptions& options,
                                                   device::Arena& arena);
std::unique_ptr<ContextParallel> allgather_attention(comm::Communicator& cp,
                                                     const ContextParallelOptions& options,
                                                     device::Arena& arena);

}  // namespace fourfold::parallel
