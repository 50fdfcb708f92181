// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hang_analysis.hpp"
#include "thread_stack.hpp"
#include "watchdog_server.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/watchdog.hpp>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace fourfold::comm {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A server, as this rank talks to it.
struct Server {
  int rank = 0;
  std::string host;
  std::uint16_t port = 0;
  std::optional<LineConnection> connection = {};
  std::size_t told_groups = 0;
  Clock::time_point tried = {};
};

/// The rank that diagnoses when rank 0 cannot: on another machine, if there is one.
int deputy_of(const std::vector<std::string>& hosts) {
  for (int rank = 1; rank < std::ssize(hosts); ++rank) {
    if (hosts[rank] != hosts.front()) {
      return rank;
    }
  }
  return 1;
}

/// A connection for each rank and stranger.
void allow_files(rlim_t more) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::min(limit.rlim_max, limit.rlim_cur + more);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::atomic<Watchdog*> the_watch{nullptr};

/// By the way the ranks' runtime has for it, so that a launcher reports the code rather than the
/// signals it then sends; should that hang as well, at once.
[[noreturn]] void end_process(int code) {
  the_watch = nullptr;  // everybody knows
  std::thread([code] {
    std::this_thread::sleep_for(2s);
    ::_exit(code);
  }).detach();
  if (rank_identity().end_all_ranks != nullptr) {
    rank_identity().end_all_ranks(static_cast<ExitCode>(code));
  }
  ::_exit(code);
}

}  // namespace

/// What a watch is made of: the rank's own peer, and on two ranks a server.
struct Watchdog::Impl {
  Impl(Communicator& world, const std::string& host, WatchdogOptions options);
  ~Impl();

  void speak();  ///< the thread that tells of this rank
  void connect(Server& server) const;
  /// Of this rank, saying nothing yet.
  RankMessage own_message() const { return {.rank = rank, .host = host, .pid = ::getpid()}; }
  void tell(const FlightSnapshot& snapshot, Server& server) const;
  void obey(LineConnection& server, bool is_own);
  void say_bye(bool ends_all) noexcept;

  void sit();  ///< the thread that diagnoses
  void name_the_silent(const WorldState& state);
  void name_the_unheard(const WorldState& state) const;
  [[noreturn]] void execute(const HangDiagnosis& verdict, const WorldState& state);

  const FlightRecorder* recorder;
  int rank;
  int ranks;
  std::string host;
  WatchdogOptions options;
  std::string secret;
  ThreadStack stack;
  std::unique_ptr<WatchdogServer> watchdog_server;
  std::atomic<bool> is_over{false};
  std::mutex speaking;  ///< with the servers
  std::vector<Server> servers;
  std::optional<Clock::time_point> diagnosed;  ///< a server has asked: it will end all soon
  bool is_leaving = false;
  std::vector<bool> is_named;  ///< ranks of which a warning was given
  std::thread peer;
  std::thread server_thread;
};

Watchdog::Impl::Impl(Communicator& world, const std::string& its_host, WatchdogOptions its_options)
    : recorder(world.flight_recorder()),
      rank(world.rank()),
      ranks(world.size()),
      host(its_host),
      options(std::move(its_options)),
      is_named(world.size()) {
  FOURFOLD_EXPECT(recorder != nullptr && ranks > 1);
  secret = broadcast_text(world, rank == 0 ? new_secret() : std::string(), 0);
  const std::vector<std::string> hosts = all_gather_text(world, host);
  for (const int server : {0, deputy_of(hosts)}) {
    if (rank == server) {
      allow_files(ranks + WatchdogServer::most_strangers);
      watchdog_server = std::make_unique<WatchdogServer>(ranks, secret);
    }
    const std::int64_t port = rank == server ? watchdog_server->port() : 0;
    servers.push_back({server, hosts[server],
                       static_cast<std::uint16_t>(all_reduce_scalar(world, port, ReduceOp::max))});
  }
  peer = std::thread([this] {
    log::set_thread_rank(rank, ranks);
    speak();
  });
  if (watchdog_server) {
    server_thread = std::thread([this] {
      log::set_thread_rank(rank, ranks);
      sit();
    });
  }
}

Watchdog::Impl::~Impl() {
  say_bye(false);
  is_over = true;
  peer.join();
  if (server_thread.joinable()) {
    server_thread.join();
  }
}

void Watchdog::Impl::connect(Server& server) const {
  constexpr auto between_tries = 1s;
  if ((server.connection && !server.connection->is_closed()) ||
      Clock::now() - server.tried < between_tries) {
    return;
  }
  server.tried = Clock::now();
  // A machine's name may lead to another of its addresses than the one it listens on: not here.
  server.connection =
      LineConnection::open(server.host == host ? "localhost" : server.host, server.port, 1000);
  server.told_groups = 0;
  if (server.connection) {
    server.connection->send(opening_of(secret) + line_of(own_message()));
  }
}

void Watchdog::Impl::tell(const FlightSnapshot& snapshot, Server& server) const {
  RankMessage message = own_message();
  message.beat = beat_of(snapshot);
  for (; server.told_groups < snapshot.groups.size(); ++server.told_groups) {
    const RecordedGroup& group = snapshot.groups[server.told_groups];
    if (std::ranges::min(group.world_ranks) == rank) {
      message.groups[group.id] = {group.name, group.world_ranks};
    }
  }
  server.connection->send(line_of(message));
}

void Watchdog::Impl::obey(LineConnection& server, bool is_own) {
  while (const auto line = server.next()) {
    const auto message = server_message_of(*line);
    if (message && message->end_code && !is_own) {
      end_process(*message->end_code);
    } else if (message && !message->end_code) {
      diagnosed = Clock::now();
      RankMessage answer = own_message();
      answer.answers = true;
      answer.calls = calls_of(recorder->snapshot());
      answer.stack = stack.read();
      server.send(line_of(answer));
    }
  }
}

void Watchdog::Impl::speak() {
  constexpr auto between_beats = 1s;
  constexpr auto pause = 100ms;
  constexpr auto for_servers_to_end_it = 15s;
  Clock::time_point spoken{};
  while (!is_over) {
    {
      const std::scoped_lock lock(speaking);
      const bool is_time = Clock::now() - spoken >= between_beats;
      const FlightSnapshot snapshot = is_time ? recorder->snapshot() : FlightSnapshot{};
      for (Server& server : servers) {
        if (is_leaving) {
          break;
        }
        connect(server);
        if (!server.connection) {
          continue;
        }
        if (is_time) {
          tell(snapshot, server);
        }
        server.connection->move();
        obey(*server.connection, server.rank == rank);
        server.connection->move();
      }
      spoken = is_time ? Clock::now() : spoken;
    }
    if (diagnosed && Clock::now() - *diagnosed > for_servers_to_end_it) {
      end_process(static_cast<int>(ExitCode::hang));  // the server itself has gone meanwhile
    }
    std::this_thread::sleep_for(pause);
  }
}

void Watchdog::Impl::say_bye(bool ends_all) noexcept {
  try {
    const std::scoped_lock lock(speaking);
    is_leaving = true;
    RankMessage message = own_message();
    message.leaves = true;
    message.ends_all = ends_all;
    for (Server& server : servers) {
      if (server.connection) {
        server.connection->send(line_of(message));
        server.connection->move();
      }
    }
  } catch (const std::exception&) {  // out of memory, at the end
  }
}

/// Long before a silent rank is given up, somebody may want to look at its machine.
void Watchdog::Impl::name_the_silent(const WorldState& state) {
  constexpr double worth_a_word_s = 8;
  for (std::size_t other = 0; other < state.ranks.size(); ++other) {
    const RankState& its = state.ranks[other];
    const bool is_silent = its.is_known && !its.has_left && its.silent_s > worth_a_word_s;
    if (is_silent && !is_named[other]) {
      log::local(log::Level::warning,
                 format_message("rank {} on {} has given no sign of life for {:.0f} s; the run is "
                                "ended after {:.0f} s of that",
                                other, its.host, its.silent_s, options.limits.silence_s));
    }
    is_named[other] = is_silent;
  }
}

/// Ranks that never came to the server: it knows nothing of them, good or bad.
void Watchdog::Impl::name_the_unheard(const WorldState& state) const {
  std::vector<int> unheard;
  for (int other = 0; other < ranks; ++other) {
    if (!state.ranks[other].is_known) {
      unheard.push_back(other);
    }
  }
  if (!unheard.empty()) {
    log::local(log::Level::warning,
               format_message("{} cannot be heard over TCP (a firewall between nodes, or a host "
                              "name that leads nowhere?) and will not be named should the run hang",
                              ranks_text(unheard)));
  }
}

void Watchdog::Impl::sit() {
  constexpr auto between_looks = 500ms;
  constexpr auto hearing = 100ms;
  constexpr double chief_is_gone_s = 5;
  constexpr auto to_be_heard = 30s;
  const Clock::time_point began = Clock::now();
  bool is_end_told = false;
  bool are_told_of = rank != 0;  // which the first server alone tells
  Clock::time_point looked = began;
  int times = 0;  // one look may fall between two words of a rank
  while (!is_over) {
    watchdog_server->listen(hearing);
    if (watchdog_server->is_being_ended() && !is_end_told) {
      is_end_told = true;
      if (options.on_end) {
        options.on_end();
      }
    }
    if (Clock::now() - looked < between_looks) {
      continue;
    }
    looked = Clock::now();
    const WorldState state = watchdog_server->state();
    if (!are_told_of && looked - began > to_be_heard) {
      name_the_unheard(state);
      are_told_of = true;
    }
    const RankState& chief = state.ranks.front();
    const bool is_mine = rank == 0 || chief.has_ended ||
                         (chief.is_known && !chief.has_left && chief.silent_s > chief_is_gone_s);
    if (!is_mine) {
      times = 0;
      continue;
    }
    name_the_silent(state);
    const auto verdict = analyse_hang(state, options.limits);
    times = verdict ? times + 1 : 0;
    if (times >= 3) {
      execute(*verdict, state);
    }
  }
}

void Watchdog::Impl::execute(const HangDiagnosis& verdict, const WorldState& state) {
  const int code = static_cast<int>(verdict.code());
  log::write_stderr(format_message("fourfold: error: the run hangs and is ended (code {})\n  {}\n",
                                   code, MadeLines{verdict.reason}));
  watchdog_server->tell_all({});
  const auto until = [this](Clock::duration time, const auto& is_done) {
    const Clock::time_point end = Clock::now() + time;
    do {
      watchdog_server->listen(50ms);
    } while (!is_done() && Clock::now() < end);
  };
  until(3s, [this] { return watchdog_server->all_have_answered(); });
  if (options.on_hang) {
    try {
      options.on_hang(verdict, report_of(state, verdict, watchdog_server->answers()));
    } catch (const std::exception& error) {  // ended it is in any case
      log::write_stderr(format_message("fourfold: error: {}\n", error.what()));
    }
  }
  watchdog_server->tell_all({code});
  until(1s, [this] { return !watchdog_server->has_unsent(); });
  end_process(code);
}

Watchdog::Watchdog(Communicator& world, const std::string& host, WatchdogOptions options) {
  if (world.size() > 1) {
    impl_ = std::make_unique<Impl>(world, host, std::move(options));
    the_watch = this;
  }
}

Watchdog::~Watchdog() {
  the_watch = nullptr;
}

void Watchdog::announce_abort() noexcept {
  if (Watchdog* const watch = the_watch) {
    watch->impl_->say_bye(true);
  }
}

}  // namespace fourfold::comm
