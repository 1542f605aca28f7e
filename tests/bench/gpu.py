#!/usr/bin/env python3
"""GpuAcc beside PyTorch, ONNX Runtime, ncnn and MNN on one machine, in one run. Needs PyTorch with
CUDA, torchvision and timm; for yolox_nano also onnx2torch, for --ort onnxruntime, for --ncnn ncnn,
pnnx and libvulkan, for --mnn an MNN with OpenCL or Vulkan.

usage: gpu.py INFERD FOLDER [--plugins DIR] [--device NAME] [--rounds N] [--only NET,NET] [--ort]
              [--ncnn] [--mnn] [--yolox FILE]

Exports networks with pseudo-random weights as ONNX into FOLDER (YOLOX nano is FILE), tunes GpuAcc
for them (tuning=2), holds its answers to PyTorch's, and times both in turn. "whole": from pictures
in host memory to answers in host memory. "inside": without these copies; for inferd the whole less
the copies' time as a profile shows it. PyTorch: eagerly, and its best, a CUDA graph; batch norms as
torchvision has them; f32 without TF32; fp16 with channels last; YOLOX nano cannot be a graph, its
trace stands there. ONNX Runtime: as it is found, on CUDA or else on all cores, whole, f32 only.
ncnn: on Vulkan, whole; it has no batches. MNN: on OpenCL or Vulkan, whole, one
picture at a time. A peer that finds no device says so and has no time: MNN would run on the CPU.
Medians of medians, in ms; ratio: PyTorch's CUDA graph / inferd."""
import argparse
import importlib
import importlib.util
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

class Detector(torch.nn.Module):
    """SSD without its last step: scores and boxes of all anchors, side by side."""

    def __init__(self):
        super().__init__()
        whole = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
            weights=None, weights_backbone=None)
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, x):
        found = self.head(list(self.backbone(x).values()))
        return torch.cat([found["cls_logits"], found["bbox_regression"]], 2)


class Segmenter(torch.nn.Module):
    """DeepLabV3 on MobileNetV3-L."""

    def __init__(self):
        super().__init__()
        self.whole = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(
            weights=None, weights_backbone=None)

    def forward(self, x):
        return self.whole(x)["out"]


class Pose(torch.nn.Sequential):
    """A "simple baseline" on MobileNetV2: heat maps of 17 points."""

    def __init__(self):
        layers, channels = [torchvision.models.mobilenet_v2().features], 1280
        for _ in range(3):
            layers += [torch.nn.ConvTranspose2d(channels, 128, 4, 2, 1, bias=False),
                       torch.nn.BatchNorm2d(128), torch.nn.ReLU()]
            channels = 128
        super().__init__(*layers, torch.nn.Conv2d(channels, 17, 1))


# How to make it, and the size of its pictures.
NETS = {
    "mobilenet_v1": (lambda: timm.create_model("mobilenetv1_100"), (224, 224)),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, (224, 224)),
    "mobilenet_v3_large": (torchvision.models.mobilenet_v3_large, (224, 224)),
    "efficientnet_lite0": (lambda: timm.create_model("efficientnet_lite0"), (224, 224)),
    "resnet50": (torchvision.models.resnet50, (224, 224)),
    "ssdlite_mobilenet_v3": (Detector, (320, 320)),
    "yolox_nano": (None, (416, 416)),
    "deeplab_v3": (Segmenter, (257, 257)),
    "pose_mobilenet_v2": (Pose, (256, 192)),
}


def size_of(name):
    return NETS[name][1]


def make(name, folder):
    """The network in CUDA's memory, with statistics of random pictures in its batch norms."""
    if name == "yolox_nano":
        convert = importlib.import_module("onnx2torch").convert
        return convert(str(folder / f"{name}.onnx")).cuda().eval()
    torch.manual_seed(1)
    net = NETS[name][0]().cuda().train()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    net(torch.randn(16, 3, *size_of(name), device="cuda"))
    return net.eval()


def free_the_batch(source, target):
    """Copies YOLOX nano, whose file is made for one picture."""
    onnx = importlib.import_module("onnx")
    model = onnx.load(source)
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for constant in model.graph.initializer:
        if constant.name in shapes:
            shape = onnx.numpy_helper.to_array(constant).copy()
            shape[0] = 0
            constant.CopyFrom(onnx.numpy_helper.from_array(shape, constant.name))
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(model, target)


def export(args, name):
    folder, path = args.folder, str(args.folder / f"{name}.onnx")
    if name == "yolox_nano":
        free_the_batch(args.yolox, path)
    net, x = make(name, folder), torch.rand(2, 3, *size_of(name))
    np.save(folder / f"{name}.in.npy", x.numpy())
    np.save(folder / f"{name}.out.npy", net(x.cuda()).cpu().numpy())
    if name != "yolox_nano":
        torch.onnx.export(net.cpu(), x[:1], path, opset_version=17, dynamo=False,
                          input_names=["input"], output_names=["output"],
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

    def __init__(self, args, name, batch, precision):
        half = precision == "fp16"
        self.net = make(name, args.folder)
        if half:
            self.net = self.net.half().to(memory_format=torch.channels_last)
        self.host = torch.rand(batch, 3, *size_of(name))
        self.x = self.host.cuda()
        self.form = (lambda x: x.half().to(memory_format=torch.channels_last)) if half else (
            lambda x: x)
        self.graph = None
        if name == "yolox_nano":  # its slices read their constants while they run: no CUDA graph
            self.net = torch.jit.trace(self.net, self.form(self.x), check_trace=False)
            return
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.net(self.form(self.x))
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = self.net(self.form(self.x)).float()

    def eager(self):
        self.y = self.net(self.form(self.x)).float()

    def inside(self):
        if self.graph:
            self.graph.replay()
        else:
            self.eager()

    def whole(self):
        self.x.copy_(self.host)
        self.inside()
        self.y.cpu()

    def times(self):
        return {
            "eager": median_ms(self.eager),
            "inside": median_ms(self.inside),
            "whole": median_ms(self.whole)
        }


class Ort:
    """A network in ONNX Runtime with the first provider that it has."""

    def __init__(self, args, name, batch):
        ort = importlib.import_module("onnxruntime")
        self.net = ort.InferenceSession(args.folder / f"{name}.onnx",
                                        providers=ort.get_available_providers())
        self.input = self.net.get_inputs()[0].name
        self.host = np.random.rand(batch, 3, *size_of(name)).astype(np.float32)

    def run(self):
        self.net.run(None, {self.input: self.host})


class Ncnn:
    """A network in ncnn on Vulkan, one picture at a time."""

    def __init__(self, args, name, precision):
        self.ncnn = importlib.import_module("ncnn")
        if self.ncnn.get_gpu_count() == 0:
            raise RuntimeError("no Vulkan device")
        shape = (1, 3, *size_of(name))
        path = args.folder / f"{name}.pt"
        if not path.with_suffix(".ncnn.param").exists():
            net = make(name, args.folder).cpu()
            torch.jit.trace(net, torch.rand(*shape)).save(str(path))
            tool = pathlib.Path(importlib.util.find_spec("pnnx").origin).parent / "pnnx"
            tool.chmod(0o755)
            text = str(list(shape)).replace(" ", "")
            subprocess.run([tool, path.name, f"inputshape={text}", "fp16=0"], cwd=args.folder,
                           check=True, capture_output=True)
        self.net = self.ncnn.Net()
        options = self.net.opt
        options.use_vulkan_compute = True
        half = precision == "fp16"
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = half
        if (self.net.load_param(str(path.with_suffix(".ncnn.param")))
                or self.net.load_model(str(path.with_suffix(".ncnn.bin")))):
            raise RuntimeError("pnnx's file has a layer that ncnn does not know")
        self.host = np.random.rand(*shape[1:]).astype(np.float32)

    def run(self):
        with self.net.create_extractor() as extractor:
            extractor.input("in0", self.ncnn.Mat(self.host))
            np.array(extractor.extract("out0")[1])


class Mnn:
    """A network in MNN on OpenCL or Vulkan, one picture at a time."""

    FORWARD = {"OPENCL": 3, "VULKAN": 7}  # what MNN says of a session; 0 and 13 are the CPU
    BACKENDS = 2  # of getSessionInfo

    def __init__(self, args, name, precision):
        self.mnn = importlib.import_module("MNN")
        model = args.folder / f"{name}.onnx"
        path = model.with_suffix(".mnn")
        if not path.exists():  # not by MNN's own script, which installs packages to report its use
            importlib.import_module("_tools").mnnconvert(
                ["mnnconvert", "-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(path),
                 "--bizCode", "x"])
        for backend, number in self.FORWARD.items():
            self.net = self.mnn.Interpreter(str(path))
            self.session = self.net.createSession({
                "backend": backend, "precision": "low" if precision == "fp16" else "high"})
            self.input = self.net.getSessionInput(self.session)
            self.net.resizeTensor(self.input, (1, 3, *size_of(name)))
            self.net.resizeSession(self.session)
            if self.net.getSessionInfo(self.session, self.BACKENDS) == number:
                break
        else:
            raise RuntimeError("neither OpenCL nor Vulkan")
        self.host = np.random.rand(1, 3, *size_of(name)).astype(np.float32)

    def run(self):
        kind, order = self.mnn.Halide_Type_Float, self.mnn.Tensor_DimensionType_Caffe
        self.input.copyFrom(self.mnn.Tensor(self.host.shape, kind, self.host, order))
        self.net.runSession(self.session)
        made = self.net.getSessionOutput(self.session)
        shape = made.getShape()
        got = self.mnn.Tensor(shape, kind, np.zeros(shape, np.float32), order)
        made.copyToHostTensor(got)


def rival_ms(kind, can, args, name, last):
    """The time of a peer, or why there is none. last: its batch or precision."""
    if not can:
        return "-"
    try:
        return f"{median_ms(kind(args, name, last).run):.3f}"
    except (ImportError, RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: {kind.__name__}: {error}", flush=True)
        return "fails"


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
    peer = Peer(args, name, batch, precision)
    for _ in range(args.rounds):
        rows.append({"ours": ours.bench(batch, precision)["median_ms"], **peer.times()})
    got = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    inside = got["ours"] - ours.copies(batch, precision)
    print(f"| {name} | {batch} | {precision} | {first:.3f} | {got['ours']:.3f} | {inside:.3f} "
          f"| {got['eager']:.3f} | {got['whole']:.3f} | {got['inside']:.3f} "
          f"| {got['whole'] / got['ours']:.2f} | {got['inside'] / inside:.2f} "
          f"| {rival_ms(Ort, args.ort and precision == 'f32', args, name, batch)} "
          f"| {rival_ms(Ncnn, args.ncnn and batch == 1, args, name, precision)} "
          f"| {rival_ms(Mnn, args.mnn and batch == 1, args, name, precision)} "
          f"| {ours.error(precision)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inferd", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--plugins")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(NETS))
    parser.add_argument("--ort", action="store_true")
    parser.add_argument("--ncnn", action="store_true")
    parser.add_argument("--mnn", action="store_true")
    parser.add_argument("--yolox", default="../shared/models/onnx/yolox_nano.onnx")
    args = parser.parse_args()
    args.inferd = args.inferd.resolve()
    args.folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, torchvision "
          f"{torchvision.__version__}, timm {timm.__version__}")
    print("| network | batch | precision | untuned, whole | whole | inside | eager | graph, whole "
          "| graph, inside | ratio, whole | ratio, inside | ORT | ncnn | MNN "
          "| error of range |")
    print("|---|" + "---|" * 14)
    with torch.no_grad():
        for name in args.only.split(","):
            export(args, name)
            for precision in ("f32", "fp16"):
                for batch in (1, 32):
                    measure(args, name, batch, precision)


main()
