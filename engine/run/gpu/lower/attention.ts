// The WebGPU kernels of the attention ops and of kv_append. A node is dispatches for few rows (keys split over
// workgroups, then merged) and for many (tiles of queries); which run depends on the rows of the step.

import type { Capabilities, GpuSlice } from "../../../../gpu/kernel.ts";
import type { FreshRow } from "../../../../gpu/kernels/attention/fresh.ts";
import { attentionMerge } from "../../../../gpu/kernels/attention/merge.ts";
import {
  type CausalRule,
  causalRule,
  givenRule,
  type SpanRule,
} from "../../../../gpu/kernels/attention/spans.ts";
import { type HeadShape, headTiles } from "../../../../gpu/kernels/attention/split.ts";
import { attentionTile, attentionTileRows } from "../../../../gpu/kernels/attention/tile.ts";
import {
  ATTENTION_TUNING,
  directChoice,
  splitBytes,
  splitChoice,
  type SplitStyle,
  tileSizes,
} from "../../../../gpu/kernels/attention/tuning.ts";
import { KV_APPEND_PAIRS, kvAppend } from "../../../../gpu/kernels/kv_append.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import { ceilDiv, type Dim, exactDiv, mul, product, sub } from "../../../graph/dim/mod.ts";
import type { Attributes, Node, Value } from "../../../graph/graph.ts";
import { isBetween } from "./choice.ts";
import { isStatic } from "../../wasm/lower/lower.ts";

/** What an attention reads, apart from its kernels. */
export interface AttentionCall {
  readonly shape: HeadShape;
  /** Rows of the step, and how many there must be: fewer are served otherwise. */
  readonly rows: Dim;
  readonly least: number;
  readonly rule: SpanRule;
  /** Most keys of a row, if known. */
  readonly keys: number | undefined;
  readonly q: GpuSlice;
  readonly k: GpuSlice;
  readonly v: GpuSlice;
  /** Bindings of the rule. */
  readonly ruleStorage: Readonly<Record<string, GpuSlice>>;
  readonly sinks: GpuSlice | undefined;
  /** Whether rows see the positions of a cache up to their own. */
  readonly isCausal: boolean;
  /** Whether the result is written in 8 bit. */
  readonly quantized: boolean;
}

/** A row that comes out of its product (gpu/kernels/attention/fresh.ts). */
export interface FreshCall {
  readonly row: FreshRow;
  /** Bindings in the place of the queries. */
  readonly storage: Readonly<Record<string, GpuSlice>>;
}

/** Keys that rows are expected to see where that is not known. */
const USUAL_KEYS = 512;

function shapeOf({ inputs: [q, k, v] }: Node): HeadShape {
  return {
    heads: q!.shape[1] as number,
    kvHeads: k!.shape[1] as number,
    width: q!.shape[2] as number,
    valueWidth: v!.shape[2] as number,
    dtype: k!.dtype as "f32" | "f16",
  };
}

function fits({ node, capabilities }: GpuKernelContext, style: SplitStyle): boolean {
  const [q, k, v] = node.inputs;
  const sizes = [...q!.shape.slice(1), ...k!.shape.slice(1), ...v!.shape.slice(1)];
  if (!sizes.every(isStatic) || k!.dtype !== v!.dtype || k!.dtype === "q8_0") return false;
  return canAttend(shapeOf(node), style, capabilities);
}

/** Whether there are kernels for heads of a shape. */
export function canAttend(
  shape: HeadShape,
  style: SplitStyle,
  capabilities: Capabilities,
): boolean {
  return splitChoice(shape, style, capabilities, USUAL_KEYS) !== undefined &&
    tileSizes(shape, capabilities.maxWorkgroupBytes) !== undefined;
}

/** Whether a kernel of a style can write the heads of values of so many channels in 8 bit. */
export function canQuantizeHeads(
  valueWidth: number,
  style: SplitStyle,
  { subgroupSize }: Capabilities,
): boolean {
  return valueWidth % 32 === 0 && (style !== "subgroup" || subgroupSize >= GROUP_LANES);
}

/** Emits the dispatches of an attention for few rows and for many. */
export function lowerAttention(
  lowering: GpuLowering,
  call: AttentionCall,
  style: SplitStyle,
): void {
  const { rows, least } = call;
  const few = isBetween(rows, least, ATTENTION_TUNING.fewRows);
  const many = isBetween(rows, ATTENTION_TUNING.fewRows + 1, Infinity);
  if (few !== 0) lowerFew(lowering, call, style, mul(few, rows));
  if (many !== 0) lowerTile(lowering, call, { rows, many, style });
}

/** All keys in one workgroup where the step's rows see few, else split and merged. */
export function lowerFew(
  lowering: GpuLowering,
  call: AttentionCall,
  style: SplitStyle,
  rows: Dim,
  fresh?: FreshCall,
): void {
  const { shape, rule, k, v, ruleStorage, sinks, quantized } = call;
  const { capabilities, node: { outputs: [y] } } = lowering;
  const direct = style === "subgroup" ? directChoice(shape, capabilities) : undefined;
  const isShort = direct ? seesFew(lowering, call) : 0;
  if (direct && isShort !== 0) {
    lowering.emit({
      shader: direct.shader(
        rule,
        { sinks: sinks !== undefined, quantize: quantized },
        fresh?.row,
      ),
      storage: {
        ...queriesOf(call, fresh),
        ...{ k, v, y: lowering.slice(y!), ...sinks && { sinks }, ...ruleStorage },
      },
      workgroups: [headTiles({ ...shape, tileHeads: direct.tileHeads }), 1, mul(rows, isShort)],
    });
  }
  if (isShort !== 1) lowerSplit(lowering, call, style, mul(rows, sub(1, isShort)), fresh);
}

function queriesOf(
  { q }: AttentionCall,
  fresh: FreshCall | undefined,
): Readonly<Record<string, GpuSlice>> {
  return fresh ? fresh.storage : { q };
}

/** 1 where the rows of a step see few keys, else 0. */
function seesFew({ reach }: GpuLowering, { keys, isCausal }: AttentionCall): Dim {
  const { directKeys } = ATTENTION_TUNING;
  if (keys !== undefined && keys <= directKeys) return 1;
  return isCausal && reach !== undefined ? isBetween(reach, 0, directKeys) : 0;
}

function lowerSplit(
  lowering: GpuLowering,
  call: AttentionCall,
  style: SplitStyle,
  rows: Dim,
  fresh: FreshCall | undefined,
): void {
  const { shape, rule, keys = USUAL_KEYS, k, v, ruleStorage, sinks, quantized } = call;
  const { capabilities, node: { outputs: [y] } } = lowering;
  const choice = splitChoice(shape, style, capabilities, keys)!;
  const { tileHeads, block, splits } = choice;
  const partial = lowering.scratch(splitBytes(shape, choice, ATTENTION_TUNING.fewRows));
  lowering.emit({
    shader: choice.shader(rule, fresh?.row),
    storage: { ...queriesOf(call, fresh), k, v, partial, ...ruleStorage },
    workgroups: [headTiles({ ...shape, tileHeads }), splits, rows],
  });
  lowering.emit({
    shader: attentionMerge({
      ...{ ...shape, rule, block, splits, sinks: sinks !== undefined },
      ...quantized && { quantize: style },
    }),
    storage: { partial, y: lowering.slice(y!), ...sinks && { sinks }, ...ruleStorage },
    workgroups: [shape.heads, rows],
  });
}

function lowerTile(
  lowering: GpuLowering,
  { shape, rule, q, k, v, ruleStorage, sinks, quantized }: AttentionCall,
  { rows, many, style }: { readonly rows: Dim; readonly many: Dim; readonly style: SplitStyle },
): void {
  const { capabilities: { maxWorkgroupBytes }, node: { outputs: [y] } } = lowering;
  const params = {
    ...shape,
    ...tileSizes(shape, maxWorkgroupBytes)!,
    rule,
    sinks: sinks !== undefined,
    ...quantized && { quantize: style },
  };
  lowering.emit({
    shader: attentionTile(params),
    storage: { q, k, v, y: lowering.slice(y!), ...sinks && { sinks }, ...ruleStorage },
    uniforms: { rows },
    workgroups: [mul(many, ceilDiv(rows, attentionTileRows(params))), headTiles(params)],
  });
}

/** Ranges of optional inputs by name; `undefined` ones are left out. */
export function slices(
  { slice }: GpuLowering,
  values: Readonly<Record<string, Value | undefined>>,
): Record<string, GpuSlice> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => value ? [[name, slice(value)]] : []),
  );
}

/** Lanes that share a group of 32 channels when they are quantised. */
const GROUP_LANES = 8;

function attentionKernel(style: SplitStyle, quantized: boolean): GpuKernel {
  return {
    name: `gpu_attention_${quantized ? "q8_" : ""}${style}`,
    when(context) {
      const { node: { inputs: [, k, v] }, capabilities } = context;
      const width = v!.shape[2] as number;
      if (quantized && !canQuantizeHeads(width, style, capabilities)) return false;
      return isStatic(k!.shape[0]) && fits(context, style);
    },
    lower(lowering) {
      const { inputs: [q, k, v, positions, slots, sinks, slopes], attributes } = lowering.node;
      const capacity = k!.shape[0] as number;
      lowerAttention(lowering, {
        ...{ shape: shapeOf(lowering.node), rows: q!.shape[0]!, least: 1 },
        ...causal(attributes, { capacity, slopes: slopes !== undefined }),
        q: lowering.slice(q!),
        k: lowering.state(k!),
        v: lowering.state(v!),
        ruleStorage: slices(lowering, { positions, slots, slopes }),
        sinks: sinks && lowering.slice(sinks),
        quantized,
      }, style);
    },
  };
}

/** What follows from the attributes of a causal attention. */
export function causal(
  attributes: Attributes,
  cache: Pick<CausalRule, "capacity" | "slopes" | "leavesOwnKey">,
): Pick<AttentionCall, "rule" | "keys" | "isCausal"> {
  const { scale, window, softcap } = attributes as Readonly<
    Record<"scale" | "window" | "softcap", number>
  >;
  return {
    rule: causalRule({ ...cache, scale, window, softcap }),
    keys: window > 0 ? Math.min(window, cache.capacity) : cache.capacity,
    isCausal: true,
  };
}

function spanAttentionKernel(style: SplitStyle): GpuKernel {
  return {
    name: `gpu_span_attention_${style}`,
    when: (context) => fits(context, style),
    lower(lowering) {
      const { inputs, attributes } = lowering.node;
      const [q, k, v, starts, ends, positions, slots, bias] = inputs;
      const capacity = k!.shape[0]!;
      const source = slots ? lowering.state : lowering.slice;
      // Positions count only where there is no end or a bias.
      const asked = ends && !bias ? undefined : positions;
      lowerAttention(lowering, {
        ...{ shape: shapeOf(lowering.node), rows: q!.shape[0]!, least: 1 },
        rule: givenRule({
          capacity: slots ? capacity as number : 0,
          scale: attributes.scale as number,
          starts: starts !== undefined,
          ends: ends !== undefined,
          positions: asked !== undefined,
          reach: bias && ((bias.shape[1] as number) - 1) / 2,
        }),
        keys: typeof capacity === "number" ? capacity : undefined,
        q: lowering.slice(q!),
        k: source(k!),
        v: source(v!),
        ruleStorage: slices(lowering, { starts, ends, positions: asked, slots, bias }),
        sinks: undefined,
        isCausal: false,
        quantized: false,
      }, style);
    },
  };
}

/** kv_append. */
export const gpuKvAppend: GpuKernel = {
  name: "gpu_kv_append",
  when: ({ node: { inputs: [cache] } }) =>
    cache!.shape.every(isStatic) && rowWidth(cache!) % 2 === 0 && cache!.dtype !== "q8_0",
  lower({ node: { inputs: [cache, x, positions, slots] }, slice, state, emit }) {
    const width = rowWidth(cache!);
    const pairs = exactDiv(product(x!.shape), 2)!;
    emit({
      shader: kvAppend({
        dtype: cache!.dtype as "f32" | "f16",
        width,
        capacity: cache!.shape[0] as number,
      }),
      storage: {
        x: slice(x!),
        cache: state(cache!),
        positions: slice(positions!),
        slots: slice(slots!),
      },
      uniforms: { pairs },
      workgroups: [ceilDiv(pairs, KV_APPEND_PAIRS)],
    });
  },
};

function rowWidth({ shape: [, heads, width] }: Value): number {
  return (heads as number) * (width as number);
}

const STYLES = ["subgroup", "workgroup"] as const;

/** Attention over the cache of a row's session. */
export const gpuAttentionKernels: readonly GpuKernel[] = STYLES.map((style) =>
  attentionKernel(style, false)
);
/** The same with a result in 8 bit. */
export const gpuAttentionQ8Kernels: readonly GpuKernel[] = STYLES.map((style) =>
  attentionKernel(style, true)
);
/** Attention over given spans. */
export const gpuSpanTileKernels: readonly GpuKernel[] = STYLES.map(spanAttentionKernel);
