// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/svg_chart.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using namespace fourfold::telemetry;
using namespace fourfold::runfile;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double huge = std::numeric_limits<double>::max();

/// What is wrong with `text` as XML, looking at nesting of elements, quoting of attributes and
/// stray special characters; empty when nothing is. (report_xml_test.py asks a real parser.)
std::string nesting_error(std::string_view text) {
  std::vector<std::string> open;
  std::size_t at = text.find("<html");
  while (at < text.size()) {
    const std::size_t begin = text.find('<', at);
    if (text.substr(at, begin - at).find('>') != std::string_view::npos) {
      return "stray > near " + std::string(text.substr(at, 60));
    }
    if (begin == std::string_view::npos) {
      break;
    }
    const std::size_t end = text.find('>', begin);
    const std::string_view tag = text.substr(begin + 1, end - begin - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (tag.find('<') != std::string_view::npos || std::ranges::count(tag, '"') % 2 != 0) {
      return "broken tag " + std::string(tag);
    }
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != name.substr(1)) {
        return "unexpected " + name;
      }
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

ReportedRun run_with_losses(
    const std::string& name, const std::vector<double>& losses,
    const std::function<void(RunStart&)>& change_start = [](RunStart&) {},
    const std::function<void(StepRecord&)>& change_step = [](StepRecord&) {}) {
  ReportedRun run;
  run.name = name;
  RunStart start;
  start.steps = static_cast<std::int64_t>(losses.size());
  start.rank_hosts = {"node1", "node1", "node2"};
  change_start(start);
  run.history.start(start, 1.7e9);
  std::int64_t step = 0;
  for (const double loss : losses) {
    ++step;
    StepRecord record{step, loss, 1, 1e-3, step * 10, 0.5, 20, 0.01};
    change_step(record);
    run.history.step(record, 1.7e9 + static_cast<double>(step));
  }
  return run;
}

std::string page(const ReportedRun& run) {
  return render_report(std::vector<ReportedRun>{run});
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the check of nesting fails where it should", "[report]") {
  CHECK(nesting_error("<html><a b=\"c\"/><p>x</p></html>").empty());
  CHECK_FALSE(nesting_error("<html><p></html>").empty());
  CHECK_FALSE(nesting_error("<html>a > b</html>").empty());
  CHECK_FALSE(nesting_error("<html><p title=\"x></p></html>").empty());
}

TEST_CASE("a report without any record, of one step and of many is whole", "[report]") {
  CHECK(nesting_error(page(ReportedRun{})).empty());
  CHECK(occurrences(page(ReportedRun{}), "no data yet") == 6);

  const std::string none = page(run_with_losses("none", {}));
  CHECK(nesting_error(none).empty());
  CHECK_THAT(none, ContainsSubstring("<b>0 / 0</b>"));

  const std::string one = page(run_with_losses("one", {3.25}));
  CHECK(nesting_error(one).empty());
  CHECK_THAT(one, ContainsSubstring("<b>3.2500</b>") && ContainsSubstring("<b>500ms</b>"));

  const std::string many = page(run_with_losses("many", std::vector<double>(5000, 1.0)));
  CHECK(nesting_error(many).empty());
  CHECK(many.size() < 200000);  // long lines are thinned
}

TEST_CASE("a report names the formula of MFU where there is one", "[report]") {
  CHECK(page(run_with_losses("gpu", {2, 1})).find("MFU") == std::string::npos);
  const ReportedRun run = run_with_losses(
      "gpu", {2, 1},
      [](RunStart& start) {
        start.flop_per_token = 7.978e8;
        start.peak_flop_per_s = 989.4e12;
      },
      [](StepRecord& step) { step.mfu = step.step == 1 ? 0.5 : 0.25; });
  const std::string html = page(run);
  CHECK(nesting_error(html).empty());
  CHECK_THAT(html, ContainsSubstring("<b>25.0%</b>"));
  CHECK_THAT(html, ContainsSubstring("6N + 6LhT = 0.7978 GFLOP per token against 989.4 TFLOP/s"));
  CHECK_THAT(html, ContainsSubstring("share of the devices"));
  const std::string both =
      render_report(std::vector<ReportedRun>{run, run_with_losses("cpu", {2})});
  CHECK_THAT(both, ContainsSubstring("<td class=\"n\">25.0%</td>"));
}

TEST_CASE("losses that are not finite leave a gap and a mark", "[report]") {
  const std::string all = page(run_with_losses("all", {nan_value, nan_value}));
  CHECK(nesting_error(all).empty());
  CHECK(occurrences(all, "no data yet") == 1);
  CHECK(occurrences(all, "class=\"gap\"") == 0);

  const std::string some = page(run_with_losses("some", {4, nan_value, 2, huge, 1, -huge, 1}));
  CHECK(nesting_error(some).empty());
  CHECK(occurrences(some, "class=\"gap\"") == 3);
  CHECK_THAT(some, ContainsSubstring("not finite at 2"));
  CHECK_THAT(some, !ContainsSubstring("\"nan") && !ContainsSubstring("inf\"") &&
                       !ContainsSubstring("nan nan"));
}

TEST_CASE("one outlier does not flatten a curve", "[report]") {
  std::vector<double> losses(100, 2.0);
  losses[50] = 1e6;
  losses[51] = 1.5;
  CHECK_THAT(page(run_with_losses("spike", losses)),
             ContainsSubstring("cut off at the top: highest value 1e+06"));
}

TEST_CASE("an axis of sizes has powers of two, and dots say what they are of", "[report]") {
  CHECK(binary_size_text(512) == "512 B");
  CHECK(binary_size_text(1536) == "1.5 KiB");
  CHECK(binary_size_text(3e12) == "2794 GiB");
  Chart chart{.title = "t", .x_label = "size", .y_label = "GB/s", .y_from_zero = true};
  chart.x_is_log2_bytes = true;
  CHECK_THAT(draw_chart(chart, ""), ContainsSubstring("no data yet"));
  // A hundred low values and two high ones, which are not cut off here.
  for (int i = 0; i <= 100; ++i) {
    chart.series.resize(1);
    chart.series[0].points.push_back({3 + 0.17 * i, i > 98 ? 100.0 : 1.0});
  }
  chart.series[0].name = "<ring>";
  chart.series[0].has_dots = true;
  const std::string svg = draw_chart(chart, "x=\"7\"");
  CHECK(svg.starts_with("<svg viewBox=\"0 0 440 250\" x=\"7\">"));
  CHECK_THAT(svg, ContainsSubstring(">8 B</text>") && ContainsSubstring(">256 KiB</text>"));
  CHECK_THAT(svg, ContainsSubstring("<title>&lt;ring&gt;, 1 MiB: 100 GB/s</title>"));
  CHECK(occurrences(svg, "<circle") == 101);
  CHECK_THAT(render_chart(chart), !ContainsSubstring("cut off"));
}

TEST_CASE("restarts, nodes, checkpoints and the end are told", "[report]") {
  ReportedRun run = run_with_losses("told", std::vector<double>(10, 1.0));
  RunStart again;
  again.first_step = 4;
  again.steps = 10;
  again.checkpoint = "ckpt/step-4";
  again.rank_hosts = {"node7", "node7", "node8", "node7"};
  again.libraries = {{"MPICH", "4.0.2"}};
  run.history.start(again, 1.7e9 + 100);
  run.history.evaluation({10, 0.75, 100, 1}, 1.7e9);
  run.history.evaluation({5, 0.5, 100, 1}, 1.7e9);
  run.history.checkpoint({10, "ckpt/step-10", 1000, 0.5}, 1.7e9);
  run.history.memory({10, 3, {{"weights", 3000000}, {"offloaded", 0}}, 3100000}, 1.7e9);
  run.history.end({10, fourfold::ExitCode{75}, "stopped by signal"}, 1.7e9);
  run.history.damaged_lines = 2;
  const std::string html = page(run);
  CHECK(nesting_error(html).empty());
  CHECK(occurrences(html, ">restart<") == 5);  // in each chart over steps
  CHECK_THAT(html, ContainsSubstring("<td>node7</td><td>0–1, 3</td><td class=\"n\">3</td>"));
  CHECK_THAT(html, ContainsSubstring("best validation loss, at step 5") &&
                       ContainsSubstring("<b>0.5000</b>"));
  CHECK_THAT(html, ContainsSubstring("<b>0.7213</b>"));  // 0.5 / ln 2
  CHECK_THAT(html,
             ContainsSubstring("ended with code 75") && ContainsSubstring("stopped by signal"));
  CHECK_THAT(html, ContainsSubstring("memory of rank 3") && !ContainsSubstring("offloaded"));
  CHECK_THAT(html, ContainsSubstring("ckpt/step-10") && ContainsSubstring("MPICH") &&
                       ContainsSubstring("2 damaged lines"));
}

TEST_CASE("text from files cannot become markup", "[report]") {
  ReportedRun run = run_with_losses("<script>alert('1')</script>&\"", {1, 2}, [](RunStart& start) {
    start.rank_hosts = {"<b>", "a\xff\x01z", "\xed\xa0\x80", "ok \u00e9\u4e2d\U0001f600"};
  });
  run.history.end({2, fourfold::ExitCode{1}, "</p><img src=x>"}, 0);
  run.timeline_svg = "<svg><style>body{color:red}</style><script>'\"&#%\xff</script></svg>";
  run.config_toml = "# </pre><script>\n";
  const std::string html = page(run);
  CHECK(nesting_error(html).empty());
  CHECK(occurrences(html, "<script") == 0);
  CHECK(occurrences(html, "<img") == 1);  // the timeline
  CHECK(occurrences(html, "<img src=x") == 0);
  CHECK(occurrences(html, "\x01") == 0);
  CHECK_THAT(html,
             ContainsSubstring("a\ufffd\ufffdz") && ContainsSubstring("ok \u00e9\u4e2d\U0001f600"));
  CHECK_THAT(html, ContainsSubstring("&lt;/pre&gt;"));
}

/// What follows `scheme` up to the closing quote, percent-decoded.
std::string decoded_url(const std::string& html, const std::string& scheme) {
  std::size_t at = html.find(scheme) + scheme.size();
  std::string text;
  for (; html.at(at) != '"'; ++at) {
    if (html[at] == '%') {
      text += static_cast<char>(std::stoi(html.substr(at + 1, 2), nullptr, 16));
      at += 2;
    } else {
      text += html[at];
    }
  }
  return text;
}

TEST_CASE("the report of a traced run shows the timeline, byte for byte", "[report]") {
  const ScratchFolder folder;
  const std::string svg =
      "<svg xmlns=\"x\" viewBox='0 0 1 1'>\n<text>50 % \u00b5s #1 & \\</text></svg>\n";
  write_bytes(folder.path() / "metrics.jsonl", "");
  CHECK(load_reported_run(folder.path()).timeline_svg.empty());
  CHECK(occurrences(page(load_reported_run(folder.path())), "Pipeline") == 0);
  write_bytes(folder.path() / "timeline.svg", svg);
  const std::string html = page(load_reported_run(folder.path()));
  CHECK(nesting_error(html).empty());
  CHECK(decoded_url(html, "src=\"data:image/svg+xml,") == svg);
}

TEST_CASE("the report asks nothing of a network", "[report]") {
  const std::string html = page(run_with_losses("x", {1, 2}));
  for (const char* reference : {"http", "src=", "href=", "url(", "@import"}) {
    CHECK(occurrences(html, reference) == 0);
  }
}

TEST_CASE("several runs share charts and show where they differ", "[report]") {
  std::vector<ReportedRun> runs{run_with_losses("alpha", {3, 2}),
                                run_with_losses("beta", {3, 1, 0.5}), run_with_losses("empty", {})};
  runs[0].config = RunConfig{};
  runs[1].config = RunConfig{};
  runs[1].config->optim.schedule.lr = 0.125;
  const std::string html = render_report(runs);
  CHECK(nesting_error(html).empty());
  CHECK(occurrences(html, "<svg") == 6);
  CHECK_THAT(html, ContainsSubstring("<i class=\"key c1\"></i>beta"));
  CHECK_THAT(html,
             ContainsSubstring("<td>beta</td><td>optim.lr</td><td>0.0006</td><td>0.125</td>"));
}

TEST_CASE("a run directory becomes a report", "[report]") {
  const ScratchFolder dir;
  std::filesystem::create_directories(dir / "runs/small");
  write_bytes(dir / "runs/small/metrics.jsonl",
              "{\"event\":\"start\",\"from_step\":0,\"steps\":1,\"rank_hosts\":[\"h\"]}\n"
              "{\"event\":\"step\",\"step\":1,\"loss\":2.5}\n");
  write_bytes(dir / "runs/small/config.toml", "[optim]\nlr = 0.125\n");
  const ReportedRun run = load_reported_run(dir / "runs/small/");
  CHECK(run.name == "small");
  CHECK(run.config->optim.schedule.lr == 0.125);
  write_report(dir / "report.html", std::vector{run});
  CHECK_THAT(read_bytes(dir / "report.html"),
             ContainsSubstring("lr = 0.125") && ContainsSubstring("<b>2.5000</b>"));

  write_bytes(dir / "runs/small/config.toml", "[optim\n");
  CHECK_THROWS_WITH(load_reported_run(dir / "runs/small"), ContainsSubstring("config.toml:1:"));
  CHECK_THROWS_AS(load_reported_run(dir / "absent"), fourfold::UserError);
  CHECK_THROWS_AS(write_report("/proc/nonexistent/report.html", std::vector{run}), fourfold::Error);
  // What has come to that name since anybody looked.
  write_bytes(dir / "mine.html", "precious");
  CHECK_THROWS_AS(write_report(dir / "mine.html", std::vector{run}), fourfold::UserError);
  CHECK(read_bytes(dir / "mine.html") == "precious");
}

TEST_CASE("the report shows loss scale and skipped steps of f16, and of no other run", "[report]") {
  const std::string skipped = "of them skipped: f16 overflowed";
  const std::string other = page(run_with_losses("half", {4, 3, 2}));
  CHECK(other.find("Loss scale") == std::string::npos);
  CHECK(other.find(skipped) == std::string::npos);
  const std::string shown = page(run_with_losses(
      "half", {4, 3, 2}, [](RunStart&) {},
      [](StepRecord& step) {
        step.loss_scale = 65536;
        step.skipped_steps = 17;
        step.grad_norm = step.step == 2 ? nan_value : step.grad_norm;
      }));
  CHECK(nesting_error(shown) == "");
  CHECK_THAT(shown, ContainsSubstring("Loss scale"));
  CHECK_THAT(shown, ContainsSubstring("<b>17</b><span>" + skipped));
}

TEST_CASE("what is no regular file does not become a report, and is named", "[report]") {
  const ScratchFolder dir;
  write_bytes(dir / "elsewhere", "");
  for (const std::string name : {"metrics.jsonl", "config.toml", "timeline.svg"}) {
    std::filesystem::create_directory(dir / "run");
    write_bytes(dir / "run/metrics.jsonl", "");
    std::filesystem::remove(dir / "run" / name);
    const auto refused = [&](const char* kind) {
      CAPTURE(name, kind);
      CHECK_THROWS_WITH(load_reported_run(dir / "run"),
                        ContainsSubstring("run/" + name) && ContainsSubstring(kind));
      std::filesystem::remove(dir / "run" / name);
    };
    REQUIRE(::mkfifo((dir / "run" / name).c_str(), 0600) == 0);
    refused("it is a pipe");
    std::filesystem::create_directory(dir / "run" / name);
    refused("it is a folder");
    std::filesystem::create_symlink(dir / "elsewhere", dir / "run" / name);
    refused("it is a symbolic link");
    std::filesystem::create_symlink("/dev/zero", dir / "run" / name);
    refused("it is a symbolic link");
    std::filesystem::remove_all(dir / "run");
  }
}

TEST_CASE("a report of many starts and checkpoints shows the last ones", "[report]") {
  ReportedRun run = run_with_losses("long", {1});
  for (std::int64_t i = 1; i <= 1500; ++i) {
    RunStart start;
    start.first_step = i;
    start.mesh = "mesh" + std::to_string(i) + ".";
    run.history.start(start, 1.7e9);
    run.history.checkpoint({i, "step" + std::to_string(i) + ".", 1000, 0.5}, 1.7e9);
  }
  const std::string html = page(run);
  CHECK(nesting_error(html).empty());
  CHECK(occurrences(html, ">501 earlier ones are not shown.<") == 1);  // of 1501
  CHECK(occurrences(html, ">500 earlier ones are not shown.<") == 1);
  CHECK_THAT(html, ContainsSubstring("step501.") && !ContainsSubstring("step500.") &&
                       ContainsSubstring("mesh501.") && !ContainsSubstring("mesh500."));
}
