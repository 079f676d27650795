// Sizes of one step, and the shapes and contents of the inputs that follow from them: token ids, positions
// and masks (spec TL-6, TL-15). Rows of a cache that hold nothing yet, because the past is padded, are masked.

import { UnsupportedError } from "../../errors.ts";
import type { HostData } from "../../graph/graph.ts";
import { type HostTensor, setElement } from "../../ops/host_tensor.ts";
import type { InputShapes } from "../derivation/symbols.ts";
import type { PortRole } from "./port_names.ts";
import { type DecoderPorts, growingAxes, type Port } from "./ports.ts";

/** Sizes of one step. */
export interface StepSizes {
  /** Tokens of the step. */
  readonly rows: number;
  /** Tokens before it. */
  readonly length: number;
  /** Rows of the caches that are fed, at least `length` in a buffer, and where masks reach. */
  readonly held: number;
  /** Rows whose logits are wanted; default 1. */
  readonly wanted?: number;
}

/** Keys that a mask speaks of. */
export function totalOf({ past }: DecoderPorts, { rows, length, held }: StepSizes): number {
  return past === "buffered" ? length + rows : held + rows;
}

/** Rows to feed for a past: whole blocks where the rest can be masked or is found by the graph. */
export function heldRows(
  { past }: DecoderPorts,
  { length, padTo }: { readonly length: number; readonly padTo: number },
): number {
  return past === "exact" ? length : Math.ceil(length / padTo) * padTo;
}

/** Shapes of all inputs. */
export function shapesAt(ports: DecoderPorts, sizes: StepSizes): InputShapes {
  const shapes = new Map<string, readonly number[]>();
  const total = totalOf(ports, sizes);
  const put = (port: Port | undefined, shape: (port: Port) => readonly number[]) =>
    port && shapes.set(port.name, shape(port));
  put(ports.tokens, () => [1, sizes.rows]);
  put(ports.hidden, (port) => grown(port, sizes.rows));
  put(ports.mask, ({ dims }) => dims.length === 4 ? [1, 1, sizes.rows, total] : [1, total]);
  put(ports.positions, (port) => {
    const count = ofAllKeys(ports, port) ? total : sizes.rows;
    return port.dims.length === 1 ? [count] : [1, count];
  });
  put(ports.cachePositions, ({ dims }) => [dims[0] === 1 ? 1 : sizes.rows]);
  put(ports.lastKeys, ({ dims }) => dims.map(() => 1));
  put(ports.keys, () => [total]);
  for (const port of [ports.source, ...ports.memory]) {
    put(port, (one) => grown(one, ports.sourceRows!));
  }
  for (const { name, dims, axis } of ports.caches) {
    shapes.set(name, dims.map((dim, at) => at === axis ? sizes.held : Number(dim) || 1));
  }
  return shapes;
}

function grown(port: Port, rows: number): number[] {
  // Of two open axes the first is the number of sequences, under whatever name.
  const axis = growingAxes(port).at(-1);
  return port.dims.map((dim, at) => at === axis ? rows : Number(dim) || 1);
}

// Positions of keys (ALiBi) are declared as long as the mask, those of rows as long as the tokens.
function ofAllKeys({ mask, tokens, hidden }: DecoderPorts, { dims }: Port): boolean {
  const own = dims.at(-1);
  const source = tokens ?? hidden;
  const rows = source?.dims[growingAxes(source).at(-1)!];
  return own !== undefined && own !== rows && own === mask?.dims.at(-1);
}

/** What a step writes. */
export interface StepInputs {
  readonly sizes: StepSizes;
  /** Token ids; absent where hidden states come from another file. */
  readonly tokens?: ArrayLike<number>;
  /** Memory of an input at its largest. */
  input(name: string): HostData;
}

/** What hides a key: exporters write it, and it stays finite when it is added twice in float32. */
const HIDDEN = -65504;

/** Writes everything but hidden states and caches. */
export function writeInputs(ports: DecoderPorts, step: StepInputs): void {
  const { sizes, tokens } = step;
  const { rows, length, held } = sizes;
  const total = totalOf(ports, sizes);
  const target = (role: PortRole): HostTensor | undefined => {
    const port = ports[role];
    return port && { dtype: port.dtype, shape: [], data: step.input(port.name) };
  };
  const ids = target("tokens");
  for (let row = 0; ids && tokens && row < rows; row++) {
    setElement(ids, { index: row, value: tokens[row]! });
  }
  const positions = target("positions");
  if (positions) {
    const base = ofAllKeys(ports, ports.positions!) ? total - rows : 0;
    for (let key = 0; key < base; key++) {
      setElement(positions, { index: key, value: key < length ? key : 0 });
    }
    for (let row = 0; row < rows; row++) {
      setElement(positions, { index: base + row, value: length + row });
    }
  }
  // Where the graph compares indices of rows in the cache.
  const places = target("cachePositions");
  const count = ports.cachePositions?.dims[0] === 1 ? 1 : rows;
  const first = total - rows;
  for (let row = 0; places && row < count; row++) {
    setElement(places, { index: row, value: first + row });
  }
  const lastKeys = target("lastKeys");
  if (lastKeys) setElement(lastKeys, { index: 0, value: total - 1 });
  const mask = target("mask");
  if (!mask) return;
  const pastEnd = ports.past === "buffered" ? length : Math.min(length, held);
  if (ports.mask!.dims.length === 2) {
    for (let key = 0; key < total; key++) {
      setElement(mask, { index: key, value: key < pastEnd || key >= total - rows ? 1 : 0 });
    }
  } else fillMask(mask, { rows, total, pastEnd });
}

/**
 * A mask [rows, total] of the last `rows` of `total` keys over themselves and `pastEnd` earlier ones: 0 and
 * −65504, or false and true where booleans say what is hidden.
 */
export function fillMask(
  mask: HostTensor,
  { rows, total, pastEnd }: {
    readonly rows: number;
    readonly total: number;
    readonly pastEnd: number;
  },
): void {
  const hidden = mask.dtype === "bool" ? 1 : HIDDEN;
  const { data } = mask;
  (data as Uint8Array).fill(0, 0, rows * total);
  setElement(mask, { index: 0, value: hidden });
  const code = data[0] as number;
  data[0] = 0;
  for (let row = 0; row < rows; row++) {
    const start = row * total;
    (data as Uint8Array).fill(code, start + pastEnd, start + total - rows);
    (data as Uint8Array).fill(code, start + total - rows + row + 1, start + total);
  }
}

/** @throws {UnsupportedError} If a graph cannot take a padded past. */
export function checkPadding({ past, file }: DecoderPorts, padTo: number | undefined): void {
  if (past !== "exact" || padTo === undefined || padTo === 1) return;
  throw new UnsupportedError(`does not mask a padded past, which padTo ${padTo} needs`, {
    file,
    remedy: "Leave padTo out",
  });
}
