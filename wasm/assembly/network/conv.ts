// Convolution of float32 planes, as a product of weights with what lies under the windows.
//
// A chunk is some places of one plane of the output, in the order of memory, and some blocks of filters (conv_blocks.ts).
// What lies under the places is packed in panels of eight, all taps of them (conv_gather.ts); then tiles pass over all taps (gen/conv_tiles.ts), so a sum is written once, with bias and activation. Places come from
// engine/run/wasm/lower/conv_setup.ts: as many as fit the second cache, and no more than is worth a chunk's time.
//
// Not kept: lines of a channel that neighbouring taps share, and sums in memory for runs of channels: 38 to 42 of 58 GFLOP/s on
// a Zen 4 core, where all taps in panels and sums in registers reach 46 to 52 (bench/results/kernels.md).
import { addressAt, chunksOf, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { RELU } from "../generated/conv_tiles";
import { EDGE, blocksOf, convBlock, firstOf } from "./conv_blocks";
import { gather, panelBytes, spread } from "./conv_gather";
import { activateRun } from "./epilogue";
import {
  CONV_ACTIVATION, CONV_B, CONV_BATCH, CONV_BEGIN_W, CONV_CHANNELS, CONV_DEPTH, CONV_FILTERS, CONV_GROUPS, CONV_HEIGHT,
  CONV_KERNEL_D, CONV_KERNEL_H, CONV_KERNEL_W, CONV_OUT_DEPTH, CONV_OUT_HEIGHT, CONV_OUT_WIDTH, CONV_SETUP, CONV_STRIDE_W,
  CONV_W, CONV_WIDTH, CONV_X, CONV_Y,
} from "../generated/opcodes";

/** Blocks of filters of a chunk at least. */
const PART: u32 = 4;
/** Multiply-adds of a chunk, and places that weights are worth fetching for. */
const WORK: u32 = 1 << 21;
const FEWEST: u32 = 56;

/** Words of `setup`, see engine/run/wasm/lower/conv_setup.ts. */
const SCRATCH: usize = 0, SCRATCH_BYTES: usize = 4, PLACES: usize = 8, NOTES: usize = 12, RUN: usize = 16, CHUNKS: usize = 20,
  BASE: usize = 24;

export function conv(ip: usize): void {
  const groups = u32At(ip, CONV_GROUPS), filters = u32At(ip, CONV_FILTERS) / groups;
  const channels = u32At(ip, CONV_CHANNELS) / groups, setup = addressAt(ip, CONV_SETUP);
  const kernel = u32At(ip, CONV_KERNEL_D) * u32At(ip, CONV_KERNEL_H) * u32At(ip, CONV_KERNEL_W);
  const taps = channels * kernel, blocks = blocksOf(filters), planes = u32At(ip, CONV_BATCH) * groups;
  const outWidth = u32At(ip, CONV_OUT_WIDTH), area = u32At(ip, CONV_OUT_DEPTH) * u32At(ip, CONV_OUT_HEIGHT) * outWidth;
  const worth = WORK / (taps * filters), places = min(load<u32>(setup, PLACES), worth > FEWEST ? worth : FEWEST) & ~7;
  // Short rows are joined, long ones cut.
  const span = outWidth > places ? outWidth : area, spans = span ? area / span : 0;
  const panels = chunksOf(span, 8), run = load<u32>(setup, RUN);
  const pieces = chunksOf(panels * 8, places), all = planes * spans * pieces;
  // Each part of the filters packs the places again, where they are packed run by run.
  const wanted = load<u32>(setup, CHUNKS) << <u32>(run < channels && all > 1);
  let parts: u32 = 1;
  if (all && all < wanted) parts = min(chunksOf(blocks, PART), chunksOf(wanted, all));
  const total = all * parts, inside = u32At(ip, CONV_DEPTH) * u32At(ip, CONV_HEIGHT) * u32At(ip, CONV_WIDTH);
  const edge = <usize>load<u32>(setup, SCRATCH) + <usize>thread * load<u32>(setup, SCRATCH_BYTES);
  const notes = edge + EDGE, lines = notes + <usize>load<u32>(setup, NOTES);
  const stride = <usize>area << 2, activation = u32At(ip, CONV_ACTIVATION), relu = activation == RELU;
  const base = <usize>load<u32>(setup, BASE);
  let last: u32 = -1;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const part = <u32>c % parts, some = <u32>c / parts, piece = some % pieces, line = some / pieces;
    const begin = piece * panels / pieces * 8, count = min((piece + 1) * panels / pieces * 8, span) - begin;
    const plane = line / spans, first = line % spans * span + begin, group = plane % groups;
    const bias = addressAt(ip, CONV_B), out = (<usize>(plane * filters * area + first)) << 2;
    for (let from: u32 = 0; from < channels; from += run) {
      const here = min(run, channels - from), isLast = from + here == channels;
      if (some != last || run < channels) {
        const x = addressAt(ip, CONV_X) + ((<usize>(plane * channels + from) * inside) << 2);
        packPlaces(ip, x, here, first, count, notes, lines);
        last = some;
      }
      for (let block = part * blocks / parts, end = (part + 1) * blocks / parts; block < end; block++) {
        const filter = firstOf(block, filters), height = firstOf(block + 1, filters) - filter;
        const w = addressAt(ip, CONV_W) + (<usize>((group * filters + filter) * taps + from * kernel * height) << 2);
        const row = out + filter * stride, y = addressAt(ip, CONV_Y) + row;
        const b = bias && !from ? bias + (<usize>(group * filters + filter) << 2) : 0;
        const before = from ? y : base ? base + row : 0;
        convBlock(height, w, here * kernel, lines, count, b, y, stride, before, relu && isLast, edge);
        if (!isLast || relu || !activation) continue;
        for (let f: u32 = 0; f < height; f++) activateRun(activation, y + f * stride, count);
      }
    }
  }
}

/** What lies under `count` places from `first` on. */
function packPlaces(ip: usize, x: usize, channels: u32, first: u32, count: u32, notes: usize, lines: usize): void {
  const width = u32At(ip, CONV_WIDTH), rows = u32At(ip, CONV_DEPTH) * u32At(ip, CONV_HEIGHT);
  const kernel = u32At(ip, CONV_KERNEL_D) * u32At(ip, CONV_KERNEL_H) * u32At(ip, CONV_KERNEL_W);
  const outRows = u32At(ip, CONV_OUT_DEPTH) * u32At(ip, CONV_OUT_HEIGHT);
  const isWhole = rows == 1 && outRows == 1 && u32At(ip, CONV_OUT_WIDTH) == width;
  if (kernel == 1 && isWhole && u32At(ip, CONV_STRIDE_W) == 1 && !u32At(ip, CONV_BEGIN_W)) {
    // Planes lie as they are wanted, see engine/run/wasm/lower/conv.ts.
    const panel = panelBytes(channels);
    x += <usize>first << 2;
    for (let c: u32 = 0; c < channels; c++, x += <usize>width << 2, lines += 32) spread(x, count, panel, lines);
  } else gather(ip, x, channels, first, count, notes, lines);
}
