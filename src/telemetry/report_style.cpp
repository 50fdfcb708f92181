// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report_sections.hpp"

#include <fourfold/base/picture.hpp>

namespace fourfold::telemetry {

std::string report_style() {
  return std::string(picture_style) + R"(
:root{--page:#f6f7f9;--card:#fff;--bad:#c4320a;--good:#067647;--c0:#2563eb;--c1:#e2700c;--c2:#0f9f6e;
--c3:#9333ea;--c4:#db2777;--c5:#64748b}
@media (prefers-color-scheme:dark){:root{--page:#101318;--card:#191d24;--bad:#ff8a5c;--good:#4ade9f;
--c0:#6ea8fe;--c1:#ffa24d;--c2:#3fd6a0;--c3:#c69bff;--c4:#ff7eb6;--c5:#a3b1c6}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.45 var(--font);font-variant-numeric:tabular-nums}
main{max-width:1160px;margin:0 auto;padding:20px 16px 40px}
h1{font-size:23px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:16px;margin:30px 0 10px}
small,.note,.soft{color:var(--soft)}
.note{font-size:13px;margin:2px 0 0}
.state{display:inline-block;font-size:13px;font-weight:600;padding:1px 10px;border-radius:99px;border:1px solid;
vertical-align:3px;margin-left:8px;color:var(--soft)}
.state.good{color:var(--good)}.state.bad{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(max(22%,150px),1fr));gap:10px;margin-top:16px}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:10px 14px}
.tile b{display:block;font-size:21px;line-height:1.25;font-weight:650}
.tile span{font-size:13px;color:var(--soft)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:12px;margin-top:12px}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 12px 8px}
figcaption{font-size:14px}
figcaption span{white-space:nowrap;margin-left:12px;font-size:13px}
.timeline{display:block;min-width:100%}
svg{display:block;width:100%;height:auto;margin-top:4px}
.key{display:inline-block;width:14px;height:3px;border-radius:2px;vertical-align:middle;margin-right:5px;
background:currentColor}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}.c5{color:var(--c5)}
.line{fill:none;stroke:currentColor;stroke-width:1.7;stroke-linejoin:round;stroke-linecap:round}
.faint{stroke-width:1;opacity:.32}.dash{stroke-dasharray:5 4}
.area{fill:currentColor;fill-opacity:.22;stroke:currentColor;stroke-width:1.2;stroke-linejoin:round}
.dot{fill:currentColor}.gap{fill:var(--bad)}
.axis{stroke:var(--soft)}.mark{stroke:var(--soft);stroke-dasharray:2 3}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--rule);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;padding:6px 14px;border-top:1px solid var(--rule);vertical-align:top}
tr:first-child th{border-top:0}
th{font-weight:600;color:var(--soft);font-size:13px;white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap}
td.wrap{overflow-wrap:anywhere}
details{margin-top:10px}
summary{cursor:pointer;font-weight:600;padding:4px 0}
pre{margin:6px 0 0;padding:12px 14px;overflow-x:auto;background:var(--card);border:1px solid var(--rule);
border-radius:10px;font:12.5px/1.5 ui-monospace,"DejaVu Sans Mono",monospace}
footer{margin-top:34px;font-size:13px;color:var(--soft)}
@media print{body{background:#fff}.tile,figure{break-inside:avoid}}
)";
}

}  // namespace fourfold::telemetry
