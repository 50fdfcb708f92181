// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::verify {

std::string to_json(const Arguments& arguments, const train::Tolerances& tolerances,
                    const std::vector<double>& reference_losses,
                    const std::vector<Verdict>& verdicts) {
  nlohmann::ordered_json object{
      {"reference", {{"mesh", arguments.meshes.front()}, {"losses", reference_losses}}},
      {"tolerances",
       {{"loss", tolerances.loss},
        {"gradient", tolerances.gradient},
        {"weight", tolerances.weight}}},
      {"meshes", nlohmann::ordered_json::array()}};
  for (const Verdict& verdict : verdicts) {
    const train::MeshComparison& result = verdict.comparison;
    object["meshes"].push_back({{"mesh", verdict.mesh},
                                {"passed", result.passed()},
                                {"same_initial_weights", result.same_initial_weights},
                                {"ranks_agree", result.ranks_agree},
                                {"loss_error", result.loss_error},
                                {"gradient_error", result.gradient_error},
                                {"weight_error", result.weight_error},
                                {"first_difference", result.first_difference.value_or("")}});
  }
  return json_text(object);
}

}  // namespace fourfold::verify
