// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/tensor_view.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <string>

TEST_CASE(
    "a broken contract names the expression when contracts are on, and costs nothing when off",
    "[contract]") {
  std::array<float, 6> data{};
  const fourfold::TensorView view(data.data(), {2, 3});
#if FOURFOLD_CONTRACTS
  try {
    (void)view.as<double>();
    FAIL("no contract violation");
  } catch (const fourfold::ContractViolation& violation) {
    CHECK(std::string(violation.what()).find("dtype_ == dtype_of<T>") != std::string::npos);
    CHECK(violation.code() == fourfold::ExitCode::internal);
  }
#else
  CHECK(view.as<float>() == data.data());
#endif
  CHECK(view.rows(1, 1).as<float>() == data.data() + 3);
  CHECK(view.reshape({3, 2}).dim(0) == 3);
}
