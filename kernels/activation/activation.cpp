// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "activation_backend.hpp"
#include "vectors/storage.hpp"

#include <fourfold/kernels/activation.hpp>

namespace fourfold::kernels {

void gelu(ConstTensorView x, TensorView y, device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == y.elements());
  with_storage(x.dtype(), [&]<class T>(T) {
    ActivationOperands<T>::gelu(x.as<T>(), y.as<T>(), x.elements(), stream);
  });
}

void gelu_backward(ConstTensorView dy, ConstTensorView x, TensorView dx, device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == dy.elements() && x.elements() == dx.elements());
  with_storage(x.dtype(), [&]<class T>(T) {
    ActivationOperands<T>::gelu_backward(dy.as<T>(), x.as<T>(), dx.as<T>(), x.elements(), stream);
  });
}

void swiglu(ConstTensorView gate_up_T2F, TensorView y_TF, device::StreamRef stream) {
  FOURFOLD_EXPECT(y_TF.shape().rank() == 2 && gate_up_T2F.elements() == 2 * y_TF.elements());
  with_storage(y_TF.dtype(), [&]<class T>(T) {
    ActivationOperands<T>::swiglu(gate_up_T2F.as<T>(), y_TF.as<T>(), y_TF.dim(0), y_TF.dim(1),
                                  stream);
  });
}

void swiglu_backward(ConstTensorView dy_TF, ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                     device::StreamRef stream) {
  FOURFOLD_EXPECT(dy_TF.shape().rank() == 2 && gate_up_T2F.elements() == 2 * dy_TF.elements());
  FOURFOLD_EXPECT(dgate_up_T2F.elements() == gate_up_T2F.elements());
  with_storage(dy_TF.dtype(), [&]<class T>(T) {
    ActivationOperands<T>::swiglu_backward(dy_TF.as<T>(), gate_up_T2F.as<T>(), dgate_up_T2F.as<T>(),
                                           dy_TF.dim(0), dy_TF.dim(1), stream);
  });
}

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream) {
  FOURFOLD_EXPECT(a.elements() == y.elements() && b.elements() == y.elements());
  with_storage(y.dtype(), [&]<class T>(T) {
    ActivationOperands<T>::add(a.as<T>(), b.as<T>(), y.as<T>(), y.elements(), stream);
  });
}

}  // namespace fourfold::kernels
