# The network of Stable Diffusion's shapes (1.4, or 2.1 by --model sd21) in plain PyTorch, with random weights: the peer of
# unet.ts.
#
# python bench/diffusion/unet.py [--model sd14] [--size 512] [--batch 2] [--rounds 20] [--compile] [--turns]
#
# float16, scaled_dot_product_attention, channels_last; eager, and with --compile also torch.compile. Prints the median
# and the least of a step in milliseconds, by the device's events. With --turns it answers each line of standard input with
# the times of ten eager steps, behind three that warm up, by the clock of the host as unet.ts has it.

import argparse
import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["sd14", "sd21"], default="sd14")
parser.add_argument("--size", type=int, default=512)
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--rounds", type=int, default=20)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--turns", action="store_true")
args = parser.parse_args()

CHANNELS, EMBEDDING = (320, 640, 1280, 1280), 1280
CONTEXT = {"sd14": 768, "sd21": 1024}[args.model]
# Channels of a head by the width of its level: 8 heads each, or heads of 64 channels.
HEAD = {"sd14": lambda width: width // 8, "sd21": lambda width: 64}[args.model]


class Resnet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, inputs), nn.GroupNorm(32, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(EMBEDDING, outputs)
        self.short = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.short(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(context, width, bias=False), nn.Linear(context, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x, context):
        heads = lambda y: y.unflatten(-1, (-1, HEAD(y.shape[-1]))).transpose(1, 2)
        y = F.scaled_dot_product_attention(heads(self.q(x)), heads(self.k(context)), heads(self.v(context)))
        return self.out(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(32, width, eps=1e-6)
        self.linear = args.model == "sd21"  # its projections are products of rows, not convolutions of one place
        project = (lambda: nn.Linear(width, width)) if self.linear else (lambda: nn.Conv2d(width, width, 1))
        self.into, self.back = project(), project()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = Attention(width, width), Attention(width, CONTEXT)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, context):
        b, c, h, w = x.shape
        y = self.norm(x) if self.linear else self.into(self.norm(x))
        y = y.permute(0, 2, 3, 1).reshape(b, h * w, c)
        y = self.into(y) if self.linear else y
        n = self.norms[0](y)
        y = y + self.own(n, n)
        y = y + self.cross(self.norms[1](y), context)
        value, gate = self.up(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(value * F.gelu(gate))
        y = self.back(y) if self.linear else y
        y = y.reshape(b, h, w, c).permute(0, 3, 1, 2)
        return x + (y if self.linear else self.back(y))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(320, EMBEDDING), nn.SiLU(), nn.Linear(EMBEDDING, EMBEDDING))
        self.first = nn.Conv2d(4, 320, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        skips, width = [320], 320
        for level, channels in enumerate(CHANNELS):
            for _ in range(2):
                self.down.append(nn.ModuleList(
                    [Resnet(width, channels), Transformer(channels) if level < 3 else None]))
                width = channels
                skips.append(width)
            if level < 3:
                self.down.append(nn.ModuleList([nn.Conv2d(width, width, 3, 2, 1)]))
                skips.append(width)
        self.middle = nn.ModuleList([Resnet(1280, 1280), Transformer(1280), Resnet(1280, 1280)])
        for level, channels in reversed(list(enumerate(CHANNELS))):
            for i in range(3):
                parts = [Resnet(width + skips.pop(), channels), Transformer(channels) if level < 3 else None]
                width = channels
                if i == 2 and level > 0:
                    parts.append(nn.Conv2d(width, width, 3, padding=1))
                self.up.append(nn.ModuleList(parts))
        self.norm, self.last = nn.GroupNorm(32, 320), nn.Conv2d(320, 4, 3, padding=1)

    def forward(self, x, t, context):
        steps = torch.exp(-math.log(10000) * torch.arange(160, device=x.device) / 160) * t[:, None]
        t = self.time(torch.cat([steps.cos(), steps.sin()], -1).to(x.dtype))
        x = self.first(x)
        skips = [x]
        for parts in self.down:
            if len(parts) == 1:
                x = parts[0](x)
            else:
                x = parts[0](x, t)
                x = parts[1](x, context) if parts[1] is not None else x
            skips.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, t), context), t)
        for parts in self.up:
            x = parts[0](torch.cat([x, skips.pop()], 1), t)
            x = parts[1](x, context) if parts[1] is not None else x
            if len(parts) == 3:
                x = parts[2](F.interpolate(x, scale_factor=2, mode="nearest"))
        return self.last(F.silu(self.norm(x)))


def measure(name, step):
    for _ in range(3):
        step()
    times = []
    for _ in range(args.rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    peak = torch.cuda.max_memory_allocated() / 2**20
    print(json.dumps({"peer": f"PyTorch {torch.__version__} {name}", "model": args.model, "size": args.size, "batch": args.batch,
                      "stepMs": round(sorted(times)[len(times) // 2], 2), "leastMs": round(min(times), 2),
                      "peakMiB": round(peak),
                      "device": torch.cuda.get_device_name()}), flush=True)


def take_turns(step):
    times = []
    for i in range(13):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(1000 * (time.perf_counter() - begin))
    print(json.dumps(times), flush=True)


with torch.inference_mode():
    torch.manual_seed(0)
    unet = Unet().half().cuda().to(memory_format=torch.channels_last).eval()
    if not args.turns:
        print(json.dumps({"weights": sum(p.numel() for p in unet.parameters())}), flush=True)
    side = args.size // 8
    x = torch.randn(args.batch, 4, side, side, device="cuda", dtype=torch.half).to(
        memory_format=torch.channels_last)
    t, context = torch.full((args.batch,), 500.0, device="cuda"), torch.randn(
        args.batch, 77, CONTEXT, device="cuda", dtype=torch.half)
    eager = lambda: unet(x, t, context)
    if args.turns:
        take_turns(eager)
        for _ in sys.stdin:
            take_turns(eager)
        sys.exit()
    measure("eager", eager)
    if args.compile:
        fast = torch.compile(unet)
        begin = time.perf_counter()
        fast(x, t, context)
        print(json.dumps({"compileSeconds": round(time.perf_counter() - begin)}), flush=True)
        measure("torch.compile", lambda: fast(x, t, context))
