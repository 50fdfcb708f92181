// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::verify {

std::string to_json(const Arguments& arguments, const std::vector<double>& reference_losses,
                    const std::vector<Verdict>& verdicts) {
  nlohmann::ordered_json object{
      {"reference", {{"mesh", arguments.meshes.front()}, {"losses", reference_losses}}},
      {"meshes", nlohmann::ordered_json::array()}};
  for (const Verdict& verdict : verdicts) {
    const train::MeshComparison& result = verdict.comparison;
    const train::Tolerances& tolerances = verdict.tolerances;
    object["meshes"].push_back({{"mesh", verdict.mesh},
                                {"passed", result.passed()},
                                {"same_initial_weights", result.same_initial_weights},
                                {"ranks_agree", result.ranks_agree},
                                {"loss_error", result.largest.loss},
                                {"gradient_error", result.largest.gradient},
                                {"rounding_error", result.largest.rounding},
                                {"weight_error", result.largest.weight},
                                {"product_error", result.largest.product},
                                {"checked_products", result.checked_products},
                                {"steps", result.steps},
                                {"differing_steps", result.differing_steps},
                                {"skipped_steps", result.skipped_steps},
                                {"first_difference", result.first_difference.value_or("")},
                                {"tolerances",
                                 {{"loss", tolerances.loss},
                                  {"gradient", tolerances.gradient},
                                  {"rounding", tolerances.rounding},
                                  {"weight", tolerances.weight},
                                  {"product", tolerances.product}}}});
  }
  return json_text(object);
}

}  // namespace fourfold::verify
