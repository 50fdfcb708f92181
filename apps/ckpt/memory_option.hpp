// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

namespace fourfold::ckpt {

/// --memory: "256M", "2G", or a number of MiB; at least `least_mib`.
void add_memory_option(CLI::App& verb, std::int64_t& bytes, std::int64_t least_mib,
                       const char* meaning);

}  // namespace fourfold::ckpt
