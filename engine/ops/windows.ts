// Sliding windows: how convolutions and pools turn spatial dims into output dims, and where a window
// lies. One to three spatial dims; loops run over three, the missing outer ones have size 1.

import { choice, integersFrom } from "./attributes.ts";
import { add, ceilDiv, type Dim, floorDiv, min, mul, sub } from "../graph/dim/mod.ts";

/** How pads come about: as given, or such that the output has ⌈size / stride⌉ places. */
const PADDING_NAMES = ["explicit", "same_upper", "same_lower"] as const;

/** Attributes of every windowed op; an empty list stands for ones (strides, dilations) or zeros (pads). */
export const WINDOW_RULES = {
  strides: integersFrom(1, []),
  dilations: integersFrom(1, []),
  /** Begins of all spatial dims, then their ends. */
  pads: integersFrom(0, []),
  padding: choice(PADDING_NAMES, "explicit"),
} as const;

/** What `WINDOW_RULES` lets through, and the kernel's extents. */
export interface WindowAttributes {
  readonly kernel: readonly number[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly pads: readonly number[];
  readonly padding: typeof PADDING_NAMES[number];
}

/**
 * One window along each spatial dim, complete.
 *
 * @throws {RangeError} On a list of the wrong length, or more than three spatial dims.
 */
export function completeWindow(given: WindowAttributes): WindowAttributes {
  const rank = given.kernel.length;
  if (rank < 1 || rank > 3) {
    throw new RangeError(`a window has 1 to 3 spatial dims: the kernel has ${rank}`);
  }
  const filled = (name: "strides" | "dilations" | "pads", count: number, value: number) => {
    const list = given[name];
    if (list.length !== 0 && list.length !== count) {
      throw new RangeError(`${name} has ${list.length} entries: must have ${count}`);
    }
    return list.length === 0 ? new Array<number>(count).fill(value) : list;
  };
  return {
    ...given,
    strides: filled("strides", rank, 1),
    dilations: filled("dilations", rank, 1),
    pads: filled("pads", 2 * rank, 0),
  };
}

/** Places of a kernel of `size` taps with gaps. */
function span(window: WindowAttributes, axis: number): number {
  return (window.kernel[axis]! - 1) * window.dilations[axis]! + 1;
}

/** Output dims; `ceil` counts a last window that is not full, as long as it starts inside. */
export function windowDims(
  spatial: readonly Dim[],
  { window, ceil = false }: {
    readonly window: WindowAttributes;
    readonly ceil?: boolean | undefined;
  },
): Dim[] {
  const rank = window.kernel.length;
  if (spatial.length !== rank) {
    throw new RangeError(`x has ${spatial.length} spatial dims, the kernel has ${rank}`);
  }
  return spatial.map((size, axis) => {
    const stride = window.strides[axis]!;
    if (window.padding !== "explicit") return ceilDiv(size, stride);
    const begin = window.pads[axis]!, end = window.pads[rank + axis]!;
    const room = sub(add(size, begin + end), span(window, axis));
    if (typeof room === "number" && room < 0) {
      throw new RangeError(`a window of ${span(window, axis)} does not fit dim ${axis}: ${size}`);
    }
    if (!ceil) return add(floorDiv(room, stride), 1);
    const starts = floorDiv(sub(add(size, begin), 1), stride);
    return add(min(ceilDiv(room, stride), starts), 1);
  });
}

/** Pads before and after along each dim of a concrete size. */
export function windowPads(
  spatial: readonly number[],
  window: WindowAttributes,
): { readonly begin: number; readonly end: number }[] {
  const rank = window.kernel.length;
  return spatial.map((size, axis) => {
    if (window.padding === "explicit") {
      return { begin: window.pads[axis]!, end: window.pads[rank + axis]! };
    }
    const places = Math.ceil(size / window.strides[axis]!);
    const total = Math.max(0, (places - 1) * window.strides[axis]! + span(window, axis) - size);
    const small = Math.floor(total / 2), large = total - small;
    return window.padding === "same_upper"
      ? { begin: small, end: large }
      : { begin: large, end: small };
  });
}

/** Dims of the output of a transposed window (the input of the forward one). */
export function transposedDims(
  spatial: readonly Dim[],
  { window, outputPadding }: {
    readonly window: WindowAttributes;
    readonly outputPadding: readonly number[];
  },
): Dim[] {
  const rank = window.kernel.length;
  return spatial.map((size, axis) => {
    const stride = window.strides[axis]!;
    if (window.padding !== "explicit") return mul(size, stride);
    const pads = window.pads[axis]! + window.pads[rank + axis]!;
    const places = add(mul(sub(size, 1), stride), span(window, axis));
    return sub(add(places, outputPadding[axis] ?? 0), pads);
  });
}

/** A list of up to three entries, filled up in front. */
export function three(list: readonly number[], fill: number): [number, number, number] {
  return [...new Array<number>(3 - list.length).fill(fill), ...list] as [number, number, number];
}

/** Everything that a loop over three spatial dims needs. */
export interface WindowLoops {
  readonly size: readonly [number, number, number];
  readonly out: readonly [number, number, number];
  readonly kernel: readonly [number, number, number];
  readonly stride: readonly [number, number, number];
  readonly dilation: readonly [number, number, number];
  /** Pads before. */
  readonly begin: readonly [number, number, number];
  /** Pads after. */
  readonly end: readonly [number, number, number];
}

/** Loops of a window over concrete spatial sizes. */
export function windowLoops(
  spatial: readonly number[],
  { out, window }: { readonly out: readonly number[]; readonly window: WindowAttributes },
): WindowLoops {
  const pads = windowPads(spatial, window);
  return {
    size: three(spatial, 1),
    out: three(out, 1),
    kernel: three(window.kernel, 1),
    stride: three(window.strides, 1),
    dilation: three(window.dilations, 1),
    begin: three(pads.map(({ begin }) => begin), 0),
    end: three(pads.map(({ end }) => end), 0),
  };
}

/** The outputs `from..to` (exclusive) along one dim for which a tap lies inside the input. */
export function tapRange(
  loops: WindowLoops,
  { axis, tap }: { readonly axis: 0 | 1 | 2; readonly tap: number },
): [number, number] {
  const stride = loops.stride[axis];
  const shift = tap * loops.dilation[axis] - loops.begin[axis];
  const from = Math.max(0, Math.ceil(-shift / stride));
  const to = Math.min(loops.out[axis], Math.floor((loops.size[axis] - 1 - shift) / stride) + 1);
  return [from, to];
}
