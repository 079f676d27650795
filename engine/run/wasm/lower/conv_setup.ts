// The words that tell convolution kernels how they lay out what lies under their windows. Elements that
// taps of neighbouring places share are packed once, as a line: with stride s, one line for each remainder
// of the taps' columns by s. Where windows are too far apart to share, each tap has a line of its own.
// Read by wasm/assembly/network/conv_depthwise.ts, in this order:
//   scratch, bytes of it a thread, bytes of a line, lines of a row of the input, places that a line has more
//   than its piece; rows of a chunk; columns where lines start; where taps lie
// and by network/conv.ts: scratch, bytes of it a thread, most places of a chunk, bytes of what is noted about them; channels
// that are packed at a time, chunks that are worth sharing out the filters for, and what sums start from.

import type { Dim } from "../../../graph/dim/mod.ts";
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

/** Bytes of what lies under the places of a chunk: what fits the second cache. */
const PACKED_BYTES = 448 * 1024;
const MOST_PLACES = 512;
const FEWEST_PLACES = 56;
/** Chunks that are worth sharing out the filters for, where no chunk packs the same channels again. */
const CHUNKS = 16;
/** Bytes of a panel's edge, see network/conv_blocks.ts. */
const CONV_EDGE_BYTES = 192;

/** Setup of `conv` for so many channels of a group, rows of the output of this width, and planes or volumes. */
export function convSetup(
  lowering: WasmLowering,
  { window, channels, width, isPlane }: {
    readonly window: LoweredWindow;
    readonly channels: number;
    readonly width: Dim;
    readonly isPlane: boolean;
  },
): number {
  const kernel = window.kernel.reduce((product, size) => product * size);
  const fitting = (taps: number) =>
    Math.max(8, Math.min(MOST_PLACES, PACKED_BYTES / (4 * taps)) & ~7);
  // Weights are worth fetching for so many places: of fewer, some channels are packed after the others.
  const runs = fitting(kernel * channels) < FEWEST_PLACES / 2
    ? Math.ceil(channels / Math.max(1, Math.floor(PACKED_BYTES / (4 * kernel * FEWEST_PLACES))))
    : 1;
  const run = Math.ceil(channels / runs), taps = kernel * run;
  const places = runs > 1 ? Math.min(fitting(taps), FEWEST_PLACES) : fitting(taps);
  // Wider rows than a chunk are as wide as it.
  const widths = typeof width === "number"
    ? [Math.max(1, width)]
    : Array.from({ length: places }, (_, i) => i + 1);
  const sizes = widths.map((width) => noteBytes(window, { places, width, isPlane }));
  const notes = roundUp(Math.max(...sizes), 64);
  const bytes = roundUp(CONV_EDGE_BYTES + notes + 4 * places * (taps + 1), 4096);
  const { threads, node: { inputs } } = lowering, chunks = runs > 1 ? 2 * threads : CHUNKS;
  const base = inputs[3] ? lowering.address(inputs[3]) : 0;
  const room = [lowering.scratch(bytes), bytes, places, notes];
  return lowering.words(Uint32Array.of(...room, run, chunks, base));
}

/** Bytes that network/conv_gather.ts notes about `places` places of rows of this width, and its buffer. */
function noteBytes(
  { kernel, stride, dilation }: LoweredWindow,
  { places, width, isPlane }: {
    readonly places: number;
    readonly width: number;
    readonly isPlane: boolean;
  },
): number {
  const [kd, kh, kw] = kernel, [, strideH, strideW] = stride, reach = (kw - 1) * dilation[2];
  const outRows = width > places ? 1 : Math.ceil(places / width) + 1;
  const columns = Math.min(places, width);
  const apart = outRows * kd * kh, together = (outRows - 1) * strideH + (kh - 1) * dilation[1] + 1;
  const rows = kd === 1 && isPlane ? Math.min(apart, together) : apart;
  const phases = Math.min(strideW, reach + 1), pitch = columns + Math.floor(reach / strideW);
  const runs = places / 8 + outRows;
  return 4 * (kd * kh * kw + 2 * runs + rows * phases * (3 + pitch) + 8);
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
