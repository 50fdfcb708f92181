// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "local_tier/payload_copies.hpp"
#include "save/step_save.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/io/digest.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace fourfold::io {
namespace {

constexpr int tag = 0;

/// One file on its way in. Takes all its bytes, whatever becomes of them.
class Arrival {
 public:
  Arrival(const StoredFile& file, const std::filesystem::path& path) : file_(file), path_(path) {
    failure_ = comm::capture_failure([&] { output_.emplace(OutputFile::create(path)); });
  }
  void take(std::uint64_t offset, std::span<const std::byte> bytes) {
    crc_ = crc32c(bytes, crc_);
    if (!failure_) {
      failure_ = comm::capture_failure([&] { output_->write_at(offset, bytes); });
    }
  }
  std::optional<comm::Failure> finish() {
    if (!failure_) {
      failure_ = comm::capture_failure([&] {
        if (crc_ != file_.crc32c) {
          throw UserError(
              ExitCode::cannot_write,
              format_message("{}: the copy for the other node arrived with other bytes "
                             "than were saved (CRC-32C: a memory, a disk or the network "
                             "is faulty); watch the nodes of this run",
                             path_.string()));
        }
        output_->sync();
        output_->close();
      });
    }
    return failure_;
  }

 private:
  const StoredFile& file_;
  std::filesystem::path path_;
  std::optional<OutputFile> output_;
  std::uint32_t crc_ = 0;
  std::optional<comm::Failure> failure_;
};

/// One file on its way out. What cannot be read is sent as zeros: the other side waits for it.
class Departure {
 public:
  Departure(const StoredFile& file, const std::filesystem::path& path) : path_(path) {
    defect_ = input_.open(path);
    if (!defect_ && input_.size_bytes() != file.bytes) {
      defect_ = "has another size than was written";
    }
  }
  void fill(std::uint64_t offset, std::span<std::byte> bytes) {
    if (!defect_) {
      defect_ = input_.read_at(offset, bytes);
    }
    if (defect_) {
      std::ranges::fill(bytes, std::byte{0});
    }
  }
  std::optional<comm::Failure> finish() const {
    if (!defect_) {
      return std::nullopt;
    }
    return comm::capture_failure([&] {
      throw UserError(
          ExitCode::cannot_write,
          format_message("{}: cannot be copied to the other node, it {}; check the file system",
                         path_.string(), *defect_));
    });
  }

 private:
  std::filesystem::path path_;
  InputFile input_;
  Defect defect_;
};

class Exchange {
 public:
  Exchange(const Manifest& manifest, const std::filesystem::path& folder, const NodeMap& nodes,
           comm::Communicator& world)
      : folder_(folder), nodes_(nodes), world_(world) {
    write_together(world, [&] {
      out_.resize(chunk_bytes);
      in_.resize(chunk_bytes);
    });
    for (const StoredFile& file : manifest.files) {
      file_of_rank_.emplace(payload_number(file.name)->file, &file);
    }
  }

  /// In each round a rank sends one file at most and gets one at most, chunk by chunk: whoever is
  /// at chunk k of round t waits only for others that are there or before, so all get on.
  std::optional<comm::Failure> run() {
    const int node = nodes_.node_of(world_.rank());
    const std::int64_t place = nodes_.place_of(world_.rank());
    const auto receivers = nodes_.ranks_on(nodes_.next(node));
    const auto senders = nodes_.ranks_on(nodes_.previous(node));
    const std::int64_t others = std::ssize(receivers);
    const std::int64_t own = std::ssize(nodes_.ranks_on(node));
    for (std::int64_t round = 0; round < rounds(); ++round) {
      const int receiver = place / others == round ? receivers[place % others] : none;
      const std::int64_t sender_place = round * own + place;
      const int sender = sender_place < std::ssize(senders) ? senders[sender_place] : none;
      pass_on(receiver, sender);
    }
    return failure_;
  }

 private:
  static constexpr int none = -1;

  std::int64_t rounds() const {
    std::int64_t most = 0;
    for (int node = 0; node < nodes_.nodes(); ++node) {
      const std::int64_t from = std::ssize(nodes_.ranks_on(node));
      const std::int64_t to = std::ssize(nodes_.ranks_on(nodes_.next(node)));
      most = std::max(most, (from + to - 1) / to);
    }
    return most;
  }

  const StoredFile* file_of(int rank) const {
    const auto found = file_of_rank_.find(rank);
    return found == file_of_rank_.end() ? nullptr : found->second;
  }

  static std::span<std::byte> chunk(std::vector<std::byte>& buffer, const StoredFile& file,
                                    std::uint64_t offset) {
    return std::span(buffer).first(std::min<std::uint64_t>(chunk_bytes, file.bytes - offset));
  }

  void pass_on(int receiver, int sender) {
    const StoredFile* const leaving = receiver == none ? nullptr : file_of(world_.rank());
    const StoredFile* const coming = sender == none ? nullptr : file_of(sender);
    std::optional<Departure> departure;
    std::optional<Arrival> arrival;
    if (leaving != nullptr) {
      departure.emplace(*leaving, folder_ / leaving->name);
    }
    if (coming != nullptr) {
      arrival.emplace(*coming, folder_ / coming->name);
    }
    const std::uint64_t leaving_bytes = departure ? leaving->bytes : 0;
    const std::uint64_t coming_bytes = arrival ? coming->bytes : 0;
    for (std::uint64_t at = 0; at < std::max(leaving_bytes, coming_bytes); at += chunk_bytes) {
      comm::Work sent;
      comm::Work received;
      std::span<std::byte> arrived;
      if (at < coming_bytes) {
        arrived = chunk(in_, *coming, at);
        received = world_.recv(TensorView(arrived.data(), DType::u8, {std::ssize(arrived)}), sender,
                               tag, {});
      }
      if (at < leaving_bytes) {
        const std::span<std::byte> bytes = chunk(out_, *leaving, at);
        departure->fill(at, bytes);
        sent = world_.send(ConstTensorView(bytes.data(), DType::u8, {std::ssize(bytes)}), receiver,
                           tag, {});
      }
      sent.wait({});
      received.wait({});
      if (!arrived.empty()) {
        arrival->take(at, arrived);
      }
    }
    note(departure ? departure->finish() : std::nullopt);
    note(arrival ? arrival->finish() : std::nullopt);
  }

  void note(const std::optional<comm::Failure>& failure) {
    if (!failure_) {
      failure_ = failure;
    }
  }

  const std::filesystem::path& folder_;
  const NodeMap& nodes_;
  comm::Communicator& world_;
  std::map<int, const StoredFile*> file_of_rank_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::optional<comm::Failure> failure_;
};

}  // namespace

std::optional<comm::Failure> copy_to_partners(const Manifest& manifest,
                                              const std::filesystem::path& folder,
                                              const NodeMap& nodes, comm::Communicator& world) {
  return Exchange(manifest, folder, nodes, world).run();
}

}  // namespace fourfold::io
