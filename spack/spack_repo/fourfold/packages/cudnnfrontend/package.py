# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Cudnnfrontend(Package):
    """(One word: with a dash or an underscore old and new Spacks want folders of different names.) Headers by which C++ programs describe graphs of operations to cuDNN: attention, for one."""

    homepage = "https://github.com/NVIDIA/cudnn-frontend"
    git = "https://github.com/NVIDIA/cudnn-frontend.git"

    license("MIT")

    version("1.14.0", tag="v1.14.0")

    def install(self, spec, prefix):
        install_tree("include", prefix.include)
