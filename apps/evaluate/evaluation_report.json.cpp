// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "logits_file.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

#include <cmath>

namespace fourfold::evaluate {

std::string to_json(const Report& report) {
  const nlohmann::ordered_json object{{"checkpoint", report.checkpoint},
                                      {"step", report.step},
                                      {"loss", report.evaluation.loss},
                                      {"perplexity", std::exp(report.evaluation.loss)},
                                      {"tokens", report.evaluation.targets},
                                      {"samples", report.samples},
                                      {"seconds", report.seconds}};
  return json_text(object);
}

}  // namespace fourfold::evaluate
