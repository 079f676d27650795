"""Makes a copy of the installed onnxruntime that takes the processor for one with AVX2 and nothing wider, as a peer of
`deno task bench onnx --peer-isa avx2`: every `cpuid` of its library becomes `ud2`, which avx2_only.c answers.

python avx2_only.py FOLDER   (then PYTHONPATH=FOLDER LD_PRELOAD=FOLDER/avx2_only.so)

Wants objdump, readelf and cc.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys

CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def patch(library):
    code = printed("objdump", "-d", "--no-show-raw-insn", library)
    sites = [int(site, 16) for site in re.findall(r"^ *([0-9a-f]+):\tcpuid\b", code, re.M)]
    loads = re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", printed("readelf", "-lW", library))
    segments = [[int(number, 16) for number in load] for load in loads]
    with open(library, "r+b") as file:
        for site in sites:
            place = next(at + site - start for at, start, size in segments if start <= site < start + size)
            file.seek(place)
            assert file.read(2) == CPUID
            file.seek(place)
            file.write(UD2)


def main():
    folder = sys.argv[1]
    here, package = os.path.dirname(os.path.abspath(__file__)), f"{folder}/onnxruntime"
    installed = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("libonnxruntime.so*"))
    for name in os.listdir(f"{package}/capi"):
        if name.startswith("onnxruntime_pybind11_state"):
            patch(f"{package}/capi/{name}")
    source, made = f"{here}/avx2_only.c", f"{folder}/avx2_only.so"
    subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", source, "-o", made], check=True)


main()
