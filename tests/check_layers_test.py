#!/usr/bin/env python3
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that check_layers.py finds each kind of breach, and only breaches."""
import unittest

import check_layers

LICENCE = "// SPDX-FileCopyrightText: the fourfold authors\n// SPDX-License-Identifier: Apache-2.0\n"


def words_for(path, body):
    return [words for _, words in check_layers.breaches(path, LICENCE + body)]


class CheckLayers(unittest.TestCase):
    def breach(self, path, body, part):
        found = words_for(path, body)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def clean(self, path, body):
        self.assertEqual(words_for(path, body), [])

    def test_arrows(self):
        self.clean("src/train/run/trainer.cpp", "#include <fourfold/base/box.hpp>\n#include <fourfold/io/store.hpp>\n")
        self.clean("src/parallel/hooks.cpp", "#include <fourfold/comm/mesh.hpp>\n#include <fourfold/schedule/schedule.hpp>\n")
        self.clean("src/plan/simulate.cpp", "#include <fourfold/schedule/schedule.hpp>\n")
        self.breach("src/model/block.cpp", "#include <fourfold/comm/mesh.hpp>\n", "'model' must not include")
        for room in ("schedule", "plan"):
            self.breach(f"src/{room}/timeline.cpp", "#include <fourfold/comm/bandwidth.hpp>\n", f"'{room}' must not include")
            self.breach(f"src/{room}/timeline.cpp", "#include <fourfold/parallel/pipeline.hpp>\n", f"'{room}' must not include")
        self.breach("src/base/box.cpp", "  #  include \"fourfold/device/buffer.hpp\"\n", "'base' must not include")
        self.breach("io/store.cpp", "#include <fourfold/data/dataset.hpp>\n", "'io' must not include")
        self.breach("apps/program/run.cpp", "#include <fourfold/train/trainer.hpp>\n", "'program' must not include")

    def test_calls(self):
        for line in ("auto x = nlohmann::json::parse(text);", "x = Json::parse(text, nullptr, false);",
                     "return ordered_json{1}.dump(2);"):
            self.breach("src/data/tokens.json.cpp", line + "\n", "json_text.hpp")
            self.clean("src/base/include/fourfold/base/json_text.hpp", line + "\n")
            self.clean("tests/unit/data/tokens_test.cpp", line + "\n")
        self.clean("src/data/tokens.json.cpp", "auto x = parse_json<json>(text, file);\n")

    def test_messages(self):
        for body in ('throw UserError(ExitCode::config, fmt::format("{}: no (", name));',
                     'throw SystemError(code,\n                  x ? "a" : fmt::format("{}", name));',
                     'log::warning(path.string() + " is gone");', 'log::info("gone: " + error.what());',
                     'log::write_stderr(fmt::format("{}\\n", name));'):
            self.breach("src/data/dataset.cpp", body + "\n", "format_message")
            self.clean("tests/unit/data/dataset_test.cpp", body + "\n")
            self.clean("src/device/device.cuda.cpp", body + "\n")
        for body in ('throw UserError(code, format_message("{}: fmt::format( (", name));\nx = fmt::format("{}", 1);',
                     'throw UserError(code, "a sentence" "of two parts");', 'throw UserError(code, text);',
                     '/// @throws UserError (fmt::format("x"))'):
            self.clean("src/data/dataset.cpp", body + "\n")

    def test_doors(self):
        self.clean("src/comm/mpi.cpp", "#include <mpi.h>\n")
        self.clean("kernels/norm/norm_host.kokkos.cpp", "#include <Kokkos_Core.hpp>\n")
        self.clean("tests/unit/io/h5_test.cpp", "#include <hdf5.h>\n")
        self.breach("src/train/run/trainer.cpp", "#include <mpi.h>\n", "<mpi.h>")
        self.breach("src/comm/include/fourfold/comm/mesh.hpp", "#include <mpi.h>\n", "<mpi.h>")
        self.breach("src/model/block.cpp", "#include <Kokkos_Core.hpp>\n", "<Kokkos_Core.hpp>")
        self.clean("src/device/buffer.cuda.cpp", "#include <cuda_runtime_api.h>\n")
        self.breach("src/train/run/trainer.cpp", "#include <cuda_runtime_api.h>\n", "<cuda_runtime_api.h>")
        self.clean("src/device/range.cuda.cpp", "#include <nvtx3/nvToolsExt.h>\n")
        self.breach("src/train/run/trainer.cpp", "#include <nvtx3/nvToolsExt.h>\n", "<nvtx3/nvToolsExt.h>")
        for header in ("cudnn.h", "cudnn_graph.h", "cudnn_frontend.h", "cudnn_frontend/graph_interface.h", "nvrtc.h"):
            self.clean("kernels/attention/attention.cudnn.cpp", f"#include <{header}>\n")
            self.breach("kernels/attention/vendor_attention.cpp", f"#include <{header}>\n", f"<{header}>")
            self.breach("src/device/device.cuda.cpp", f"#include <{header}>\n", f"<{header}>")
        self.clean("kernels/attention/attention.cudnn.cpp", '#include "attention_backend.hpp"\n')
        for kind, other in (("host", "device"), ("device", "host")):
            header = f"vectors/rows_{kind}.hpp"
            self.breach("kernels/cast/cast.kokkos.cpp", f'#include "{header}"\n', f"<{header}>")
            self.breach(f"kernels/norm/norm_{other}.kokkos.cpp", f'#include "{header}"\n', f"<{header}>")
            self.clean(f"kernels/norm/norm_{kind}.kokkos.cpp", f'#include "{header}"\n')
        self.clean("kernels/cast/cast.kokkos.cpp", '#include "vectors/host_device.hpp"\n')
        self.clean("kernels/attention/vendor_attention.emulated.cpp", '#include "portable_attention_device.hpp"\n')
        self.clean("kernels/cast/cast.kokkos.cpp", "#include <fourfold/device/stream.hpp>\n")
        self.clean("src/comm/nccl/nccl_communicator.nccl.cpp", "#include <native_stream.hpp>\n")
        self.breach("src/train/run/trainer.cpp", "#include <cuda_check.hpp>\n", "<cuda_check.hpp>")
        self.breach("src/device/include/fourfold/device/stream.hpp", "#include \"native_stream.hpp\"\n", "<native_stream.hpp>")
        self.clean("kernels/backend/emulated/enqueue.hpp", "#include <emulated_gpu.hpp>\n")
        self.breach("src/device/buffer.cuda.cpp", "#include <emulated_gpu.hpp>\n", "<emulated_gpu.hpp>")
        self.breach("src/train/report.cpp", "#include <nlohmann/json.hpp>\n", "<nlohmann/json.hpp>")
        self.breach("src/data/dataset.cpp", "#include <hdf5.h>\n", "<hdf5.h>")

    def test_prints(self):
        self.clean("apps/ckpt/info.cpp", 'program::print("{}\\n", name);\nlog::write_stderr(text);  // not std::cerr\n')
        self.clean("src/base/log.cpp", "std::fwrite(text.data(), 1, text.size(), stderr);\n")
        self.clean("tests/unit/base/log_test.cpp", 'std::fputs("x", stderr);\n')
        for line in ('fmt::print("{}", name);', 'fmt::println(stderr, "{}", name);', "std::cout << name;", "std::cerr << name;",
                     "std::fwrite(text.data(), 1, text.size(), stdout);", "std::fputs(text.c_str(), stderr);", "std::printf(\"%s\", name);",
                     "::write(STDOUT_FILENO, text.data(), text.size());"):
            for path in ("apps/ckpt/info.cpp", "src/train/run/trainer.cpp", "io/store.cpp", "kernels/runtime.cpp"):
                self.breach(path, line + "\n", "program/print.hpp or base/log.hpp")

    def test_opens(self):
        self.clean("src/base/regular_file.cpp", "file.descriptor.reset(::open(path.c_str(), flags, 0666));\n")
        self.clean("io/store.cpp", "OutputFile file = OutputFile::open(path);\n")
        for line in ("std::ifstream in(path);", "std::ofstream out(path);", "std::fstream both;", "std::FILE* f = std::fopen(name, mode);",
                     "const int file = ::open(path, O_RDONLY);"):
            for path in ("apps/ckpt/info.cpp", "src/telemetry/report.cpp", "io/store.cpp"):
                self.breach(path, line + "\n", "base/regular_file.hpp")

    def test_sizes_and_licence(self):
        self.clean("src/base/long.cpp", "int x;\n" * 498)
        self.breach("src/base/long.cpp", "int x;\n" * 499, "501 lines")
        self.clean("src/base/long.cpp", "// Length: one table\n" + "int x;\n" * 499)
        self.assertEqual([line for line, _ in check_layers.breaches("src/base/x.cpp", "int x;\n")], [1])
        self.breach("src/utils/x.cpp", "", "lies in no room")

    def test_headers_are_tested(self):
        header = "src/base/include/fourfold/base/box.hpp"
        test = "tests/unit/base/box_test.cpp"
        self.assertEqual(len(list(check_layers.untested({header: "", test: ""}))), 1)
        self.assertEqual(list(check_layers.untested({header: "", test: "#include <fourfold/base/box.hpp>\n"})), [])
        user = "src/comm/communicator/mesh.cpp"
        self.assertEqual(len(list(check_layers.untested({header: "", user: "#include <fourfold/base/box.hpp>\n"}))), 1)

    def test_arrows_inside_rooms(self):
        def found(path, body):
            return list(check_layers.folder_breaches({path: body, "io/save/store.cpp": "", "io/disk/file.cpp": ""}, "io"))
        self.assertEqual(found("io/save/step.cpp", '#include "disk/file.hpp"\n#include <fourfold/io/store.hpp>\n'), [])
        self.assertEqual(len(found("io/disk/lease.cpp", '#include "save/step.hpp"\n')), 1)
        self.assertEqual(len(found("io/load/load.cpp", "#include <fourfold/io/store.hpp>\n")), 1)
        self.assertEqual(len(found("io/include/fourfold/io/file.hpp", "#include <fourfold/io/store.hpp>\n")), 1)
        self.assertEqual(len(found("io/disk/lease.cpp", '#include "../save/step.hpp"\n')), 1)
        self.assertEqual(len(found("io/step.cpp", "")), 1)
        self.assertEqual(len(found("io/include/fourfold/io/nobody.hpp", "")), 1)

        def found_in_data(path, body):
            return list(check_layers.folder_breaches({path: body, "src/data/prepare/prepare.cpp": ""}, "src/data"))
        self.assertEqual(found_in_data("src/data/tokenizer/bpe.cpp", '#include "unicode/utf8.hpp"\n'), [])
        self.assertEqual(len(found_in_data("src/data/unicode/unicode_text.cpp", '#include "tokenizer/bpe.hpp"\n')), 1)
        self.assertEqual(len(found_in_data("src/data/dataset/order.cpp", "#include <fourfold/data/prepare.hpp>\n")), 1)
        self.assertEqual(len(found_in_data("src/data/utf8.cpp", "")), 1)


if __name__ == "__main__":
    unittest.main()
