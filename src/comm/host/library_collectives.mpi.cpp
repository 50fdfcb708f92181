// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "transport.mpi.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/comm/library_collectives.hpp>

#include <fmt/format.h>
#include <mpi.h>

#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace fourfold::comm {
namespace {

std::optional<MPI_Datatype> type_with_arithmetic(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::u16:
      return MPI_UINT16_T;
    case DType::u32:
      return MPI_UINT32_T;
    case DType::u64:
      return MPI_UINT64_T;
    case DType::bf16:
    case DType::f16:
      return std::nullopt;
  }
  return std::nullopt;
}

MPI_Datatype type_to_reduce(DType dtype) {
  const auto type = type_with_arithmetic(dtype);
  FOURFOLD_EXPECT(type.has_value());
  return *type;
}

/// To move elements two bytes are two bytes.
MPI_Datatype type_to_move(DType dtype) {
  return type_with_arithmetic(dtype).value_or(MPI_UINT16_T);
}

MPI_Op operation(ReduceOp op) {
  FOURFOLD_EXPECT(op != ReduceOp::avg);  // MPI has none
  return op == ReduceOp::max ? MPI_MAX : op == ReduceOp::min ? MPI_MIN : MPI_SUM;
}

int count_of(std::int64_t elements) {
  FOURFOLD_EXPECT(elements <= std::numeric_limits<int>::max());
  return static_cast<int>(elements);
}

/// The communicator of the ranks of `group`, found by their ranks in the world.
CommHandle communicator_of(Communicator& group) {
  int own = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &own));
  std::vector<std::int32_t> ranks(group.size());
  const std::vector<std::int64_t> ones(ranks.size(), 1);
  const std::int32_t sent = own;
  group.all_gather({&sent, {1}}, {ranks.data(), {group.size()}}, ones, {}).wait({});
  MPI_Comm comm = comm_of(MPI_COMM_WORLD, ranks);
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return CommHandle(comm);
}

}  // namespace

struct LibraryCollectives::Impl {
  CommHandle comm;
  int size = 1;
};

LibraryCollectives::LibraryCollectives(Communicator& group)
    : impl_(std::make_unique<Impl>(Impl{communicator_of(group), group.size()})) {}
LibraryCollectives::~LibraryCollectives() = default;

bool LibraryCollectives::can_reduce(DType dtype) noexcept {
  return type_with_arithmetic(dtype).has_value();
}

std::string LibraryCollectives::library() {
  const std::string text = mpi_library();
  constexpr std::string_view mpich = "MPICH Version:";
  if (text.starts_with(mpich)) {
    const auto number = text.find_first_not_of(" \t", mpich.size());
    return "MPICH " + text.substr(number, text.find_first_of(" \t\n", number) - number);
  }
  return text.substr(0, text.find_first_of(",\n"));
}

void LibraryCollectives::all_reduce(TensorView data, ReduceOp op) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, data.data(), count_of(data.elements()),
                          type_to_reduce(data.dtype()), operation(op), impl_->comm.get()));
}

void LibraryCollectives::all_gather(ConstTensorView send, TensorView recv) {
  FOURFOLD_EXPECT(recv.elements() == send.elements() * impl_->size);
  const MPI_Datatype type = type_to_move(send.dtype());
  const int count = count_of(send.elements());
  check_mpi(MPI_Allgather(send.data(), count, type, recv.data(), count, type, impl_->comm.get()));
}

void LibraryCollectives::reduce_scatter(ConstTensorView send, TensorView recv, ReduceOp op) {
  FOURFOLD_EXPECT(send.elements() == recv.elements() * impl_->size);
  check_mpi(MPI_Reduce_scatter_block(send.data(), recv.data(), count_of(recv.elements()),
                                     type_to_reduce(send.dtype()), operation(op),
                                     impl_->comm.get()));
}

void LibraryCollectives::all_to_all(ConstTensorView send, TensorView recv) {
  FOURFOLD_EXPECT(send.elements() == recv.elements() && send.elements() % impl_->size == 0);
  const MPI_Datatype type = type_to_move(send.dtype());
  const int count = count_of(send.elements() / impl_->size);
  check_mpi(MPI_Alltoall(send.data(), count, type, recv.data(), count, type, impl_->comm.get()));
}

void LibraryCollectives::exchange(ConstTensorView send, int target, TensorView recv, int source) {
  const MPI_Datatype type = type_to_move(send.dtype());
  check_mpi(MPI_Sendrecv(send.data(), count_of(send.elements()), type, target, 0, recv.data(),
                         count_of(recv.elements()), type, source, 0, impl_->comm.get(),
                         MPI_STATUS_IGNORE));
}

}  // namespace fourfold::comm
