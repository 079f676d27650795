// The words that tell convolution kernels how they lay out what lies under their windows. Elements that
// taps of neighbouring places share are packed once, as a line: with stride s, one line for each remainder
// of the taps' columns by s. Where windows are too far apart to share, each tap has a line of its own.
// Read by wasm/assembly/network/conv.ts and network/conv_depthwise.ts, in this order:
//   scratch, bytes of it a thread, bytes of a line, lines of a row of the input, places that a line has more
//   than its piece; what the kernel needs besides; columns where lines start

import type { WasmLowering } from "../kernel.ts";

/** A window of a node's op and its pads before, along three dims. */
export interface LoweredWindow {
  readonly kernel: readonly [number, number, number];
  readonly stride: readonly [number, number, number];
  readonly dilation: readonly [number, number, number];
  readonly begin: readonly [number, number, number];
}

/** Lines of one row of the input. */
interface Lines {
  /** Columns from the window's left edge. */
  readonly starts: readonly number[];
  /** Where each tap of a row is: its line, and the place in it. */
  readonly taps: readonly (readonly [line: number, shift: number])[];
  /** The longest shift. */
  readonly extra: number;
  /** Floats of a line. */
  readonly pitch: number;
}

function linesOf({ kernel, stride, dilation }: LoweredWindow, places: number): Lines {
  const step = stride[2], columns = [...Array(kernel[2]).keys()].map((j) => j * dilation[2]);
  const starts = [...new Set(columns.map((column) => column % step))];
  const extra = Math.floor(columns.at(-1)! / step);
  const pitch = roundUp(places + extra, 4);
  if (starts.length * pitch > columns.length * places) {
    const taps = columns.map((_, j) => [j, 0] as const);
    return { starts: columns, taps, extra: 0, pitch: places };
  }
  const taps = columns.map((column) =>
    [starts.indexOf(column % step), Math.floor(column / step)] as const
  );
  return { starts, taps, extra, pitch };
}

/** Bytes of lines, and of sums, that should fit the first cache beside weights. */
const RUN_BYTES = 24 * 1024;
const SUMS_BYTES = 16 * 1024;
/** Bytes of lines that stay in the second cache, so that further passes of filters need not pack them again. */
const KEPT_BYTES = 160 * 1024;
/** Places of a piece. */
const FEWEST_PLACES = 32;
const MOST_PLACES = 256;
const MOST_FILTERS = 96;

/** Setup of `conv` for channels of one group. */
export function convSetup(
  lowering: WasmLowering,
  { window, channels }: { readonly window: LoweredWindow; readonly channels: number },
): number {
  const { way, starts, extra } = tileLines(window), [kd, kh] = window.kernel;
  const fitting = Math.floor(RUN_BYTES / (4 * channels * kd * kh * starts.length));
  const places = Math.max(FEWEST_PLACES, Math.min(MOST_PLACES, fitting & ~31));
  // Not whole kilobytes: lines of one run would share cache sets.
  const pitch = 4 * (roundUp(places + extra, 4) + (extra || places === FEWEST_PLACES ? 0 : 16));
  const channelBytes = pitch * starts.length * kd * kh;
  const runs = Math.ceil(channels * channelBytes / (1.25 * RUN_BYTES));
  const run = Math.max(1, Math.ceil(channels / runs));
  const pass = Math.min(MOST_FILTERS, Math.floor(SUMS_BYTES / (4 * places) / 6) * 6);
  const isKept = channels * channelBytes <= KEPT_BYTES;
  const packed = isKept ? channels : run, kept = isKept ? channelBytes : 0;
  const bytes = roundUp(4 * pass * places + packed * channelBytes + 128, 4096);
  const head = [lowering.scratch(bytes), bytes, pitch, starts.length, extra];
  return lowering.words(Uint32Array.from([...head, run, places, pass, way, kept, ...starts]));
}

/** Lines for gen/conv_tiles.ts, with the number of the way in which they hold taps. */
function tileLines({ kernel, stride, dilation }: LoweredWindow) {
  const isThree = kernel[2] === 3 && dilation[2] === 1;
  if (isThree && stride[2] === 1) return { way: 1, starts: [0], extra: 2 };
  if (isThree && stride[2] === 2) return { way: 2, starts: [0, 1], extra: 1 };
  const starts = [...Array(kernel[2]).keys()].map((j) => j * dilation[2]);
  return { way: 0, starts, extra: 0 };
}

/** Of network/conv_depthwise.ts: columns of a block, bytes of an edge, and rows at most. */
const COLUMNS = 256;
const EDGE_BYTES = 64;
const ROWS = 16;
const MOST_BYTES = 64 * 1024;

/** Setup of `conv_depthwise`: rows of a chunk, and behind the starts bytes from line 0 to each tap. */
export function depthwiseSetup(lowering: WasmLowering, window: LoweredWindow): number {
  const lines = linesOf(window, COLUMNS), [, kh] = window.kernel;
  const rowBytes = 4 * lines.pitch * lines.starts.length, above = (kh - 1) * window.dilation[1] + 1;
  const fitting = Math.floor((MOST_BYTES / rowBytes - above) / window.stride[1]) + 1;
  const count = Math.max(1, Math.min(ROWS, fitting));
  const rows = [...Array(kh).keys()].map((row) => row * window.dilation[1] * rowBytes);
  const under = (count - 1) * window.stride[1] + above;
  const bytes = roundUp(EDGE_BYTES + under * rowBytes + 16, 4096);
  const { starts, taps, extra, pitch } = lines;
  const table = rows.flatMap((row) =>
    taps.map(([line, shift]) => row + 4 * (line * pitch + shift))
  );
  const head = [lowering.scratch(bytes), bytes, 4 * pitch, starts.length, extra, count];
  return lowering.words(Uint32Array.from([...head, ...starts, ...table]));
}

function roundUp(count: number, unit: number): number {
  return Math.ceil(count / unit) * unit;
}
