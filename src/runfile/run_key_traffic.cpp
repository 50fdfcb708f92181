// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <string>

namespace fourfold::runfile {
namespace {

RunField compression_field() {
  RunField result;
  result.kind = ValueKind::text;
  result.choices = {"none", "bf16", "int8"};
  result.form = {"lowrank:R", "with R from 1 to 1024", [](const std::string& text) {
                   return gradient_compression_named(text).has_value();
                 }};
  result.get = [](const RunConfig& config) { return Value(name(config.mesh.dp_compress)); };
  result.set = [](RunConfig& config, const Value& value) {
    config.mesh.dp_compress = *gradient_compression_named(std::get<std::string>(value));
  };
  return result;
}

}  // namespace

std::vector<RunKey> traffic_keys() {
  return {
      {.table = "mesh",
       .name = "dp_compress",
       .field = compression_field(),
       .meaning =
           "How gradients of matrices travel over the dp x cp ranks: as f32 (none), in half or a "
           "quarter of the bytes (bf16; int8, with a scale for every 256), or as products of thin "
           "matrices of R columns (lowrank:R). What is left out is kept and added to the next "
           "gradients. It needs dp_reduce = \"step\". docs/traffic.md has the bytes."},
  };
}

}  // namespace fourfold::runfile
