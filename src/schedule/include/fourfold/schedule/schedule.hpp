// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A pipeline schedule as data: for every rank the list of what it does in one step. Pure values;
/// nothing here knows memory, communicators or time. One executor runs such a list, one checker
/// proves it (below), one simulator prices it (fourfold/plan/simulate.hpp).
///
/// The model is cut into stages * chunks virtual stages, numbered along the forward pass. Each rank
/// holds `chunks` of them, numbered along the forward pass too.
///
/// How a list is executed. Executor, checker and simulator keep to exactly this:
///  1. A rank takes its actions in list order. A compute action (forward, backward,
///     backward_input, backward_weight) runs to its end; a send or receive is only posted.
///  2. Messages of one channel, (from, to, activation or gradient), are matched in the order in
///     which they are posted. A message is complete once both its send and its receive are posted
///     (rendezvous); nobody may count on a transport that buffers.
///  3. Before forward begins the activation of this micro-batch has arrived; before backward or
///     backward_input its gradient has.
///  4. A slot is one micro-batch's activations of a chunk with its input, output and gradient.
///     receive_activation takes it (or forward, where nothing is received); it is free after
///     backward or backward_weight. Before a new occupant's first action the slot's last
///     send_activation is complete; before its gradient is received or written the slot's last
///     send_gradient is.
///  5. Neighbouring virtual stages may lie on the same rank (vee: in the middle; one rank: all).
///     Then nothing is sent, and the list has no action for it. The activation is copied when the
///     later chunk's forward begins (the earlier chunk's slot is live until then); the gradient
///     when the later chunk's backward or backward_input ends, into the earlier chunk's slot, which
///     is live.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::schedule {

/// What a rank can do. backward is both halves at once; backward_input makes the gradient that the
/// previous stage waits for, backward_weight the rest, at any later time.
enum class ActionKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  send_activation,
  receive_activation,
  send_gradient,
  receive_gradient
};

bool is_compute(ActionKind kind) noexcept;
bool is_send(ActionKind kind) noexcept;
/// backward or backward_weight: the micro-batch's weight gradients are added, its slot is free.
bool ends_backward(ActionKind kind) noexcept;
/// "forward", "backward input", "send activation", ...
std::string_view name(ActionKind kind) noexcept;

/// Sends and receives name the micro-batch, chunk and slot of the compute action on their own rank
/// that makes or needs the message.
struct Action {
  ActionKind kind = ActionKind::forward;
  int micro_batch = 0;
  int chunk = 0;
  int slot = 0;  ///< of this chunk; set by lowered()
  friend bool operator==(const Action&, const Action&) = default;
};
/// As the cells of a schedule's CSV: F0, B0, I0, W0 (with chunks F0.1); sends and receives in
/// words: "send activation 0.1". @param chunks  of the schedule
std::string str(const Action& action, int chunks);

/// Where virtual stages lie. loop: stage = chunk * stages + rank. vee (two chunks): chunk 0 goes
/// down the ranks, chunk 1 comes back up: stage 2 * stages - 1 - rank, so the first rank holds both
/// ends of the model.
enum class Placement : std::uint8_t { loop, vee };
std::string_view name(Placement placement) noexcept;

/// A chunk of a rank.
struct ChunkPlace {
  int rank = 0;
  int chunk = 0;
  friend bool operator==(const ChunkPlace&, const ChunkPlace&) = default;
};

/// Which virtual stage a chunk of a rank is. @pre 0 <= rank < stages, 0 <= chunk
int virtual_stage_of(Placement placement, int stages, const ChunkPlace& place) noexcept;

struct Schedule {
  std::string name;
  int stages = 1;         ///< p: ranks on the pp axis
  int micro_batches = 1;  ///< m: of one step
  int chunks = 1;         ///< v: virtual stages per rank
  Placement placement = Placement::loop;
  std::vector<std::vector<Action>> ranks;  ///< [stages]

  int virtual_stages() const noexcept { return stages * chunks; }
  /// @pre 0 <= rank < stages, 0 <= chunk < chunks, 0 <= stage < virtual_stages()
  int virtual_stage(int rank, int chunk) const noexcept;
  ChunkPlace place_of_stage(int stage) const noexcept;
  int rank_of_stage(int stage) const noexcept { return place_of_stage(stage).rank; }

  /// Who holds the virtual stage before and after; nothing at the ends of the model.
  std::optional<ChunkPlace> previous(int rank, int chunk) const noexcept;
  std::optional<ChunkPlace> next(int rank, int chunk) const noexcept;
  /// The same, but nothing where the neighbour is this rank itself: whom messages go to.
  std::optional<ChunkPlace> previous_peer(int rank, int chunk) const noexcept;
  std::optional<ChunkPlace> next_peer(int rank, int chunk) const noexcept;
  /// Or nothing where it is on another rank: the chunk that shares its rank with its neighbour.
  std::optional<int> previous_here(int rank, int chunk) const noexcept;
  std::optional<int> next_here(int rank, int chunk) const noexcept;
  /// Whom a rank's send goes to, or a receive comes from; nothing at the ends of the model.
  /// @pre not is_compute
  std::optional<ChunkPlace> message_peer(int rank, const Action& action) const noexcept;

  /// Number of slots the actions of a rank use in a chunk. Scans the rank's list.
  int slots(int rank, int chunk) const;
  /// The most slots of a rank that are live at the same time, all chunks together: a chunk's worth
  /// of activations of one micro-batch each. At most the sum of slots() over the chunks.
  int peak_live(int rank) const;
  /// Whether any backward pass is split in two (StageOptions::Backward::split is needed).
  bool splits_backward() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Gives compute actions their slots and adds the sends and receives.
///
/// The lowest free slot is taken. A send follows its producing action at once. A receive is posted
/// one compute action before the one that needs it, so that the transfer is hidden by that one,
/// unless the slot is still taken then (activation) or not yet taken (gradient): then right before.
/// So the peak of memory is that of the compute actions alone. Total: an incomplete list gives an
/// incomplete result, which check_schedule() names.
/// @param compute  only compute actions; their slots are ignored
/// @pre the lists have compute.stages ranks; micro-batches and chunks are in range
Schedule lowered(Schedule compute);

/// The compute actions alone.
Schedule without_transfers(Schedule schedule);

/// Proves a lowered schedule right before anything runs it, or names its first defect with rank,
/// action and reason.
///
/// Proven: every micro-batch runs forward and backward once through every virtual stage, in an
/// order that each rank can keep; every message is sent once from a buffer that still holds it and
/// received once into a buffer that is free, in the same order at both ends; a slot is never taken
/// while in use; and the ranks come to the end of their lists under rendezvous (rule 2 of
/// schedule.hpp), so under any transport.
///
/// Knows nothing of how the list was made. Linear in the number of actions.
/// @param slot_limits  [rank][chunk] slots that there is memory for; empty: as many as it uses
/// @return nothing when it is right
std::optional<std::string> check_schedule(const Schedule& schedule,
                                          const std::vector<std::vector<int>>& slot_limits = {});

// Schedules as text that people write: one line per rank, from the first, with no empty line
// between them; cells between commas are its compute actions in order. F3 is the forward of
// micro-batch 3, B3 its backward, I3 and W3 the input and weight halves of it; F3.1 is that of
// chunk 1. Cells may be empty, so that columns can be steps of time. From # to the end of the line
// is a comment; `# placement: vee` (or loop, which holds if nothing is said) tells where the
// chunks lie. Slots, sends and receives follow from that.

/// The text of such a file, or nothing: it is not there, not yours to read, no regular file (a pipe
/// would block), or larger than any schedule can be.
std::optional<std::string> schedule_file_text(const std::string& path);

/// Reads, lowers and checks (check_schedule) a schedule. The text is not trusted.
/// @param file_name      for messages, and the schedule's name
/// @param stages         of the run (mesh.pp); 0: as many as the text has
/// @param micro_batches  of a step; 0: as many as the text has
/// @throws UserError (config) naming mesh.schedule, the file, line and column, and what to do
Schedule read_schedule_csv(std::string_view text, const std::string& file_name, int stages = 0,
                           int micro_batches = 0);

/// How every such text of ours begins.
inline constexpr std::string_view schedule_csv_mark =
    "# One line per rank. F forward, B backward, I and W its input and weight halves; ";

/// The compute actions as such a text, with comments that say how to read it.
std::string schedule_csv(const Schedule& schedule);

}  // namespace fourfold::schedule
