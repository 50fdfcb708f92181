// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace fourfold::benchmarks {

std::string to_json(const KernelsReport& report) {
  using Json = nlohmann::ordered_json;
  Json kernels = Json::array();
  for (const MeasuredKernel& one : report.kernels) {
    const bool copies = one.roof == Roof::copy;
    kernels.push_back({{"kernel", one.kernel},
                       {"shape", one.shape},
                       {"roof", copies ? "copy" : "product"},
                       {copies ? "bytes" : "flop", one.work},
                       {"median_s", one.measured.median_s},
                       {copies ? "bytes_per_s" : "flop_per_s", one.measured.rate},
                       {"share", one.share}});
  }
  const Json object{{"device", report.device},
                    {"copy_bytes_per_s", report.copy.rate},
                    {"product_flop_per_s", report.product.rate},
                    {"kernels", std::move(kernels)}};
  return object.dump(1) + "\n";
}

}  // namespace fourfold::benchmarks
