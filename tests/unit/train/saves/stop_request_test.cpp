// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "scratch_folder.hpp"
#include "stand_still.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/kernels/matmul.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/stop_request.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace train = fourfold::train;
using train::StopReason;

TEST_CASE("a signal is found when it is asked for, and forgotten afterwards", "[stop_request]") {
  {
    const train::StopSignals signals;
    CHECK(train::StopSignals::received() == 0);
    REQUIRE(::kill(::getpid(), SIGUSR2) == 0);
    CHECK(train::StopSignals::received() == SIGUSR2);
    CHECK(train::StopSignals::received() == SIGUSR2);
    const fourfold::harness::ScratchFolder empty;
    train::StopRequest request(empty.path(), std::nullopt);
    fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& world) {
      CHECK(request.poll(world, 0).stop == StopReason::signal);
    });
  }
  const train::StopSignals fresh;
  CHECK(train::StopSignals::received() == 0);
}

TEST_CASE("signals interrupt neither this thread nor later ones, and none is left over",
          "[stop_request]") {
  static std::atomic<int> handled = 0;
  struct sigaction count {};
  struct sigaction before {};
  count.sa_handler = [](int) { ++handled; };
  REQUIRE(sigaction(SIGUSR2, &count, &before) == 0);
  {
    const train::StopSignals signals;
    REQUIRE(std::raise(SIGUSR2) == 0);
    sigset_t waiting;
    REQUIRE(sigpending(&waiting) == 0);
    CHECK(sigismember(&waiting, SIGUSR2) == 1);
    std::thread([&] {
      CHECK(std::raise(SIGUSR2) == 0);
      CHECK(sigpending(&waiting) == 0);
    }).join();
    CHECK(sigismember(&waiting, SIGUSR2) == 1);
  }
  CHECK(handled == 0);
  CHECK(std::raise(SIGUSR2) == 0);
  CHECK(handled == 1);  // the old handler is back, and the mask
  REQUIRE(sigaction(SIGUSR2, &before, nullptr) == 0);
}

TEST_CASE("products are right and memory whole while signals rain", "[stop_request]") {
  using fourfold::DType;
  using fourfold::TensorView;
  namespace kernels = fourfold::kernels;
  // oneDNN 2.6 takes another kernel for each; those of AVX-512 do not survive a handler.
  const train::StopSignals signals;
  std::atomic<bool> done = false;
  std::thread rain([&] {
    while (!done) {
      ::kill(::getpid(), SIGUSR2);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (const std::int64_t outputs : {257, 96}) {
    std::vector<float> dy(static_cast<std::size_t>(32 * outputs), 1.0F);
    std::vector<float> w(static_cast<std::size_t>(outputs * 32), 0.5F);
    std::int64_t wrong = 0;
    for (int i = 0; i < 10'000; ++i) {
      std::vector<float> dx(32 * 32);  // on the heap: what a product may damage
      kernels::linear_backward_input(TensorView(dy.data(), DType::f32, {32, outputs}),
                                     TensorView(w.data(), DType::f32, {outputs, 32}),
                                     TensorView(dx.data(), DType::f32, {32, 32}),
                                     kernels::Write::replace, {});
      wrong += std::ranges::count_if(
          dx, [&](float value) { return value != 0.5F * static_cast<float>(outputs); });
    }
    CHECK(wrong == 0);
  }
  done = true;
  rain.join();
  CHECK(train::StopSignals::received() == SIGUSR2);
}

TEST_CASE("all ranks stop when the deadline of one comes too near", "[stop_request]") {
  const fourfold::harness::ScratchFolder empty;
  std::atomic<int> stopped = 0;
  fourfold::comm::run_ranks(3, [&](fourfold::comm::Communicator& world) {
    train::StopRequest request(empty.path(), 4e9);
    const double needed_s = world.rank() == 2 ? 4e9 : 1;  // one rank has a slow disk
    stopped += request.poll(world, 1).stop == StopReason::none ? 0 : 100;
    stopped += request.poll(world, needed_s).stop == StopReason::deadline ? 1 : 0;
  });
  CHECK(stopped == 3);
}

TEST_CASE("an end of the job that was moved later is every rank's", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  const std::filesystem::path file = fourfold::telemetry::RunFiles(folder.path()).job_end();
  const auto tell = [&](const std::string& text) { std::ofstream(file) << text; };
  ::setenv("SLURM_JOB_ID", "71", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  const double ends_s = std::floor(fourfold::unix_time_s()) + 30;
  const std::string later = std::to_string(static_cast<long>(ends_s) + 500);
  const auto asked = [&](double needed_s) {
    std::array<StopReason, 3> found{};
    fourfold::comm::run_ranks(3, [&](fourfold::comm::Communicator& world) {
      train::StopRequest request(folder.path(), ends_s);
      (void)request.poll(world, 1);
      found.at(static_cast<std::size_t>(world.rank())) = request.poll(world, needed_s).stop;
    });
    CHECK(found[0] == found[1]);
    CHECK(found[0] == found[2]);
    return found[0];
  };
  CHECK(asked(100) == StopReason::deadline);
  tell("71 2 " + later + "\n");
  CHECK(asked(100) == StopReason::none);
  CHECK(asked(600) == StopReason::deadline);
  // Of an earlier start, and sooner.
  for (const std::string& other : {"71 1 " + later, std::string("71 2 1000")}) {
    CAPTURE(other);
    tell(other);
    CHECK(asked(100) == StopReason::deadline);
  }
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST_CASE("a job that was suspended beyond its end is told the new one", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  ::setenv("SLURM_JOB_ID", "71", 1);
  ::unsetenv("SLURM_RESTART_COUNT");
  const fourfold::StandstillWatch watch(1);
  const double ends_s = fourfold::unix_time_s() + 2;
  std::array<std::vector<StopReason>, 2> found;
  fourfold::comm::run_ranks(2, [&](fourfold::comm::Communicator& world) {
    train::StopRequest request(folder.path(), ends_s, {}, train::usual_warning_s, 2);
    train::StopRequest unmoved(folder.path(), ends_s);  // by what is so short
    auto& told = found.at(static_cast<std::size_t>(world.rank()));
    told.push_back(request.poll(world, 1).stop);
    if (world.rank() == 0) {
      fourfold::harness::stand_still(3);
    }
    world.barrier();
    told.push_back(request.poll(world, 1).stop);    // nobody has said anything so far
    told.push_back(request.poll(world, 600).stop);  // nor whether there is time for that
    told.push_back(unmoved.poll(world, 1).stop);
    if (world.rank() == 0) {
      folder.write(".job-end", "71 0 " + std::to_string(static_cast<long>(ends_s) + 500));
    }
    world.barrier();
    std::this_thread::sleep_for(std::chrono::seconds(6));
    told.push_back(request.poll(world, 1).stop);
    std::this_thread::sleep_for(std::chrono::seconds(10));
    told.push_back(request.poll(world, 600).stop);
  });
  CHECK(found[0] == std::vector{StopReason::none, StopReason::none, StopReason::none,
                                StopReason::deadline, StopReason::none, StopReason::deadline});
  CHECK(found[0] == found[1]);
  ::unsetenv("SLURM_JOB_ID");
}

TEST_CASE("a STOP file stops all ranks", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  std::atomic<int> stopped = 0;
  fourfold::comm::run_ranks(2, [&](fourfold::comm::Communicator& world) {
    train::StopRequest request(folder.path(), std::nullopt);
    stopped += request.poll(world, 0).stop == StopReason::none ? 1 : 0;
    world.barrier();
    if (world.rank() == 0) {
      folder.write("STOP", "");
    }
    stopped += request.poll(world, 0).stop == StopReason::stop_file ? 1 : 0;
  });
  CHECK(stopped == 4);
}

TEST_CASE("a SAVE file asks for one save, and is removed", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  std::atomic<int> right = 0;
  fourfold::comm::run_ranks(2, [&](fourfold::comm::Communicator& world) {
    train::StopRequest request(folder.path(), std::nullopt);
    right += request.poll(world, 0) == train::Asked{} ? 1 : 0;
    world.barrier();
    if (world.rank() == 0) {
      folder.write("SAVE", "");
    }
    right += request.poll(world, 0) == train::Asked{.save = true} ? 1 : 0;
    right += request.poll(world, 0) == train::Asked{} ? 1 : 0;
  });
  CHECK(right == 6);
  CHECK_FALSE(std::filesystem::exists(fourfold::telemetry::RunFiles(folder.path()).save()));
}

TEST_CASE("a SAVE that cannot be removed is obeyed once", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  constexpr uid_t nobody = 65534;
  const bool is_root = ::geteuid() == 0;  // who may remove everything
  fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& world) {
    train::StopRequest request(folder.path(), std::nullopt);
    folder.write("SAVE", "");
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
    REQUIRE((!is_root || ::seteuid(nobody) == 0));
    const bool first = request.poll(world, 0).save;
    const bool second = request.poll(world, 0).save;
    REQUIRE((!is_root || ::seteuid(0) == 0));
    CHECK(first);
    CHECK_FALSE(second);
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
    std::filesystem::remove(fourfold::telemetry::RunFiles(folder.path()).save());
    CHECK_FALSE(request.poll(world, 0).save);
    folder.write("SAVE", "");
    CHECK(request.poll(world, 0).save);
  });
}

TEST_CASE("a folder or a link called SAVE asks for nothing, and stays", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  const auto save = fourfold::telemetry::RunFiles(folder.path()).save();
  fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& world) {
    train::StopRequest request(folder.path(), std::nullopt);
    std::filesystem::create_directories(save / "best");
    CHECK_FALSE(request.poll(world, 0).save);
    CHECK(std::filesystem::exists(save / "best"));
    std::filesystem::remove_all(save);
    std::filesystem::create_symlink("nowhere", save);
    CHECK_FALSE(request.poll(world, 0).save);
    CHECK(std::filesystem::is_symlink(save));
  });
}

TEST_CASE("a signal shortly before the end of the job is the time limit", "[stop_request]") {
  const fourfold::harness::ScratchFolder empty;
  const double now_s = static_cast<double>(std::time(nullptr));
  const auto reason = [&](int number, std::optional<double> deadline_s,
                          double warning_s = train::usual_warning_s) {
    const train::StopSignals signals;
    REQUIRE(::kill(::getpid(), number) == 0);
    StopReason found = StopReason::none;
    fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& world) {
      train::StopRequest request(empty.path(), deadline_s, {}, warning_s);
      // Another thread of the process, such as one of a device, may be the one to handle it.
      for (int tries = 0; found == StopReason::none && tries < 5000; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(tries > 0 ? 1 : 0));
        found = request.poll(world, 0).stop;
      }
    });
    return found;
  };
  CHECK(reason(SIGUSR2, now_s + 120) == StopReason::deadline);
  // The script keeps the batch system's to itself: this one is a person's.
  CHECK(reason(SIGUSR2, now_s + 120, 0) == StopReason::signal);
  CHECK(reason(SIGTERM, now_s - 5, 0) == StopReason::deadline);
  CHECK(reason(SIGTERM, now_s - 5) == StopReason::deadline);
  CHECK(reason(SIGTERM, now_s + 60) == StopReason::termination);
  CHECK(reason(SIGTERM, now_s + 3600) == StopReason::termination);
  CHECK(reason(SIGTERM, std::nullopt) == StopReason::termination);
  CHECK(reason(SIGUSR2, now_s + 3600) == StopReason::signal);
  CHECK(reason(SIGINT, std::nullopt) == StopReason::signal);
}

TEST_CASE("time is kept for what comes after one more step", "[stop_request]") {
  using Catch::Matchers::WithinRel;
  const train::TimesSoFar measured{
      .step_s = 2, .evaluation_s = 400, .save_s = 60, .evaluation_steps = 9, .save_bytes = 1e12};
  CHECK_THAT(train::time_needed_s(measured), WithinRel(2 + 90 + 5.0, 1e-12));
  train::TimesSoFar evaluating = measured;
  evaluating.evaluation_due = true;
  CHECK_THAT(train::time_needed_s(evaluating), WithinRel(2 + 500 + 90 + 5.0, 1e-12));
  train::TimesSoFar fast = measured;
  fast.local_save_due = true;
  fast.local_save_s = 4;
  CHECK_THAT(train::time_needed_s(fast), WithinRel(2 + 6 + 90 + 5.0, 1e-12));
  fast.local_save_s = 0;  // the first one, and it is no checkpoint whose time is known
  CHECK_THAT(train::time_needed_s(fast), WithinRel(2 + 30000 + 90 + 5.0, 1e-12));
  // Before the first evaluation and the first save: 9 steps' samples, 1 TB at 50 MB/s.
  evaluating.evaluation_s = 0;
  evaluating.save_s = 0;
  CHECK_THAT(train::time_needed_s(evaluating), WithinRel(2 + 1.25 * 18 + 30000 + 5.0, 1e-12));
}

TEST_CASE("the time of the next one is the longest of the last ones", "[stop_request]") {
  train::LongestOfLast<3> times;
  CHECK(times.value() == 0);
  for (const auto& [time_s, longest_s] : {std::pair{2.0, 2.0},
                                          {5.0, 5.0},
                                          {1.0, 5.0},
                                          {3.0, 5.0},
                                          {1.5, 3.0},
                                          {1.0, 3.0},
                                          {0.5, 1.5}}) {
    times.add(time_s);
    CHECK(times.value() == longest_s);
  }
  CHECK(train::time_needed_s({.step_s = 1, .save_s = 2, .margin_s = 60}) == 64);
}

TEST_CASE("a single step that is far from the others does not stop it", "[stop_request]") {
  train::LongestOfLast<4> times;
  times.add(3600);  // the first one: nothing else is known
  CHECK(times.value() == 3600);
  for (const auto& [time_s, expected_s] : {std::pair{10.0, 80.0},
                                           {9.0, 80.0},
                                           {10.0, 80.0},
                                           {9.0, 10.0},
                                           {1800.0, 80.0},
                                           {9.0, 80.0},
                                           {1800.0, 1800.0},  // they have become so slow
                                           {9.0, 1800.0}}) {
    times.add(time_s);
    CHECK(times.value() == expected_s);
  }
  train::LongestOfLast<4> quick;
  for (const double time_s : {0.01, 0.01, 4.0}) {
    quick.add(time_s);
  }
  CHECK(quick.value() == 4);
  quick.add(1800);
  CHECK(quick.value() == 32);
}

TEST_CASE("the deadline comes from the environment", "[stop_request]") {
  constexpr double now_s = 1.75e9;
  const auto found = [&] { return train::deadline_from_environment(now_s); };
  ::unsetenv("SLURM_JOB_END_TIME");
  ::unsetenv("FOURFOLD_DEADLINE");
  CHECK_FALSE(found().has_value());
  ::setenv("SLURM_JOB_END_TIME", "1900000000", 1);
  CHECK(found() == 1900000000.0);
  ::setenv("FOURFOLD_DEADLINE", "1800000000", 1);
  CHECK(found() == 1800000000.0);
  for (const char* const wrong : {"tomorrow", "inf", "-1", "1900000000s"}) {
    ::setenv("FOURFOLD_DEADLINE", wrong, 1);
    CHECK_THROWS_AS(found(), fourfold::UserError);
  }
  ::unsetenv("FOURFOLD_DEADLINE");
  ::unsetenv("SLURM_JOB_END_TIME");
}

TEST_CASE("a deadline that was another job's is not believed, and named", "[stop_request]") {
  constexpr double now_s = 1.75e9;
  ::unsetenv("FOURFOLD_DEADLINE");
  for (const char* const stale : {"1000", "1749999999", "1750000000", "Unknown", "nan", "0"}) {
    ::setenv("SLURM_JOB_END_TIME", stale, 1);
    const fourfold::harness::CapturedLog log;
    CHECK_FALSE(train::deadline_from_environment(now_s).has_value());
    CHECK(log.text().find(std::string("SLURM_JOB_END_TIME=") + stale + " is ignored") !=
          std::string::npos);
  }
  ::setenv("SLURM_JOB_END_TIME", "1900000000", 1);
  ::setenv("FOURFOLD_DEADLINE", "1000", 1);
  {
    const fourfold::harness::CapturedLog log;
    CHECK(train::deadline_from_environment(now_s) == 1900000000.0);
    CHECK(log.text().find("FOURFOLD_DEADLINE=1000 is ignored") != std::string::npos);
  }
  ::unsetenv("FOURFOLD_DEADLINE");
  ::unsetenv("SLURM_JOB_END_TIME");
}

TEST_CASE("how shortly before the end a signal is the batch system's", "[stop_request]") {
  ::unsetenv("FOURFOLD_WARNING_S");
  CHECK(train::warning_from_environment() == train::usual_warning_s);
  for (const auto& [text, seconds] :
       {std::pair{"0", 0.0}, {"660", 660.0}, {"", train::usual_warning_s}}) {
    ::setenv("FOURFOLD_WARNING_S", text, 1);
    CHECK(train::warning_from_environment() == seconds);
  }
  for (const char* const wrong : {"-1", "soon", "1e9", "nan", "60s"}) {
    ::setenv("FOURFOLD_WARNING_S", wrong, 1);
    CHECK_THROWS_AS(train::warning_from_environment(), fourfold::UserError);
  }
  ::unsetenv("FOURFOLD_WARNING_S");
}

TEST_CASE("TERM is told from what people send, whichever came last", "[stop_request]") {
  for (const auto& [numbers, is_asked] : {std::pair<std::vector<int>, bool>{{SIGTERM}, false},
                                          {{SIGTERM, SIGINT, SIGHUP}, false},
                                          {{SIGUSR2, SIGTERM}, true},
                                          {{SIGTERM, SIGUSR1}, true}}) {
    const train::StopSignals signals;
    for (const int number : numbers) {
      REQUIRE(::kill(::getpid(), number) == 0);
      // Another thread that does not block it may be the one that gets it, when its turn comes.
      for (int tries = 0; train::StopSignals::received() != number && tries < 5000; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      CHECK(train::StopSignals::received() == number);
    }
    CHECK(train::StopSignals::was_asked() == is_asked);
  }
}

TEST_CASE("whatever asks a process to end asks the run to stop", "[stop_request]") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    const train::StopSignals signals;
    REQUIRE(::kill(::getpid(), number) == 0);
    // Another thread that does not block it may be the one that gets it, when its turn comes.
    for (int waited_ms = 0; train::StopSignals::received() == 0 && waited_ms < 5000; ++waited_ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(train::StopSignals::received() == number);
  }
}

TEST_CASE("nobody reads the log any more: the run goes on", "[stop_request]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  ::close(ends[0]);
  {
    const train::StopSignals signals;
    CHECK(::write(ends[1], "x", 1) == -1);
    CHECK(errno == EPIPE);
  }
  struct sigaction now {};
  REQUIRE(sigaction(SIGPIPE, nullptr, &now) == 0);
  CHECK(now.sa_handler == SIG_DFL);
  ::close(ends[1]);
}
