#!/usr/bin/env python3
"""GpuAcc beside PyTorch on one GPU, in one run. Needs PyTorch with CUDA, torchvision and timm.

usage: gpu.py INFERD FOLDER [--plugins DIR] [--device NAME] [--rounds N] [--only NET,NET]

Exports five networks with pseudo-random weights as ONNX into FOLDER, tunes GpuAcc for them
(tuning=2), holds its answers to PyTorch's, and times both in turn. "whole": from pictures in host
memory to answers in host memory. "inside": without these copies; for inferd the whole less the
copies' time as a profile shows it. PyTorch: eagerly, and its best, a CUDA graph; batch norms as
torchvision has them; f32 without TF32; fp16 with channels last. Medians of medians, in ms; ratio:
PyTorch's CUDA graph / inferd."""
import argparse
import json
import pathlib
import statistics
import subprocess
import time
import warnings

import numpy as np
import timm
import torch
import torchvision

NETS = {
    "mobilenet_v1": lambda: timm.create_model("mobilenetv1_100"),
    "mobilenet_v2": torchvision.models.mobilenet_v2,
    "mobilenet_v3_large": torchvision.models.mobilenet_v3_large,
    "efficientnet_lite0": lambda: timm.create_model("efficientnet_lite0"),
    "resnet50": torchvision.models.resnet50,
}


def make(name):
    """The network in CUDA's memory, with statistics of random pictures in its batch norms."""
    torch.manual_seed(1)
    net = NETS[name]().cuda().train()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    net(torch.randn(16, 3, 224, 224, device="cuda"))
    return net.eval()


def export(name, folder):
    net, x = make(name), torch.rand(2, 3, 224, 224)
    np.save(folder / f"{name}.in.npy", x.numpy())
    np.save(folder / f"{name}.out.npy", net(x.cuda()).cpu().numpy())
    torch.onnx.export(net.cpu(), x[:1], str(folder / f"{name}.onnx"), opset_version=17,
                      dynamo=False, input_names=["input"], output_names=["output"],
                      dynamic_axes={"input": {0: "n"}, "output": {0: "n"}})


def median_ms(run, count=40):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


class Peer:
    """A network in PyTorch for one batch size and precision."""

    def __init__(self, name, batch, precision):
        half = precision == "fp16"
        self.net = make(name)
        if half:
            self.net = self.net.half().to(memory_format=torch.channels_last)
        self.host = torch.rand(batch, 3, 224, 224)
        self.x = self.host.cuda()
        self.form = (lambda x: x.half().to(memory_format=torch.channels_last)) if half else (
            lambda x: x)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.net(self.form(self.x))
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = self.net(self.form(self.x)).float()

    def whole(self):
        self.x.copy_(self.host)
        self.graph.replay()
        self.y.cpu()

    def times(self):
        return {
            "eager": median_ms(lambda: self.net(self.form(self.x))),
            "inside": median_ms(self.graph.replay),
            "whole": median_ms(self.whole)
        }


class Ours:
    def __init__(self, args, name):
        self.args, self.name = args, name
        self.model = args.folder / f"{name}.onnx"
        cache = args.folder / "cache"
        cache.mkdir(exist_ok=True)
        self.options = [
            "--backend", "GpuAcc,CpuAcc", "--backend-option", f"GpuAcc:device={args.device}",
            "--backend-option", f"GpuAcc:cache={cache}", "--backend-option",
            f"GpuAcc:tuning-file={args.folder}/tuning"
        ] + (["--backend-path", args.plugins] if args.plugins else [])

    def run(self, command, *options):
        result = subprocess.run([self.args.inferd, command, self.model, *self.options, *options],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise SystemExit(f"{self.name}: {result.stderr}")
        return result.stdout

    def error(self, precision):
        text = self.run("compare", "--precision", precision, "--input",
                        self.args.folder / f"{self.name}.in.npy", "--golden",
                        self.args.folder / f"{self.name}.out.npy")
        return text.split("max/range")[-1].split()[0]

    def bench(self, batch, precision, *options):
        text = self.run("bench", "--precision", precision, "--batch", str(batch), "--warmup", "5",
                        "--iterations", "40" if batch == 1 else "15", "--json", *options)
        return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])

    def copies(self, batch, precision):
        layers = self.bench(batch, precision, "--layers")["layers"]
        return sum(layer["us"] for layer in layers if layer["name"].startswith("transfer")) / 1e3


def measure(args, name, batch, precision):
    ours, rows = Ours(args, name), []
    first = ours.bench(batch, precision)["median_ms"]
    ours.bench(batch, precision, "--backend-option", "GpuAcc:tuning=2")
    peer = Peer(name, batch, precision)
    for _ in range(args.rounds):
        rows.append({"ours": ours.bench(batch, precision)["median_ms"], **peer.times()})
    got = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    inside = got["ours"] - ours.copies(batch, precision)
    print(f"| {name} | {batch} | {precision} | {first:.3f} | {got['ours']:.3f} | {inside:.3f} "
          f"| {got['eager']:.3f} | {got['whole']:.3f} | {got['inside']:.3f} "
          f"| {got['whole'] / got['ours']:.2f} | {got['inside'] / inside:.2f} "
          f"| {ours.error(precision)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inferd", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--plugins")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(NETS))
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, torchvision "
          f"{torchvision.__version__}, timm {timm.__version__}")
    print("| network | batch | precision | untuned, whole | whole | inside | eager | graph, whole "
          "| graph, inside | ratio, whole | ratio, inside | error of range |")
    print("|---|" + "---|" * 11)
    with torch.no_grad():
        for name in args.only.split(","):
            export(name, args.folder)
            for precision in ("f32", "fp16"):
                for batch in (1, 32):
                    measure(args, name, batch, precision)


main()
