// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/stored_array.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::model_conversion {

/// Our parameters, as f32 masters, out of the files of another program: any box of them, turned,
/// taken apart and widened on the way. Reads through a few MiB. One thread at a time.
class ExternalSource final : public io::TensorSource {
 public:
  /// @param find  the array that holds a tensor, or null
  /// @throws UserError: data_corrupt naming the tensor when it is missing or has another shape;
  ///   config when its type is no floating-point number
  ExternalSource(std::vector<ExternalTensor> tensors,
                 const std::function<const io::StoredArray*(const std::string& name)>& find);

  /// @pre id names a master that one of the tensors holds
  void read(const io::TensorId& id, const Box& box, TensorView target) override;

 private:
  struct Place {
    io::StoredArray array;
    Part part;
  };
  void read_rows(const Place& place, const Box& theirs, float* values);

  std::map<std::string, Place, std::less<>> places_;  ///< by our name
  std::vector<std::byte> elements_;                   ///< as they lie in the file
  std::vector<std::byte> window_;
  std::vector<float> values_;
};

}  // namespace fourfold::model_conversion
