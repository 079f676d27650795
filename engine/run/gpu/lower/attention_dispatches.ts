// The dispatches of an attention: for few rows (keys split over workgroups, then merged) and for many (teams of
// lanes, or tiles of queries); which run depends on the rows of the step.

import type { Capabilities, GpuSlice } from "../../../../gpu/kernel.ts";
import type { FreshRow } from "../../../../gpu/kernels/attention/fresh.ts";
import { type HeadShape, headTiles } from "../../../../gpu/kernels/attention/heads.ts";
import { attentionMerge } from "../../../../gpu/kernels/attention/merge.ts";
import type { SpanRule } from "../../../../gpu/kernels/attention/spans.ts";
import {
  ATTENTION_TUNING,
  directChoice,
  manyChoice,
  splitBytes,
  splitChoice,
  type SplitStyle,
} from "../../../../gpu/kernels/attention/tuning.ts";
import { ceilDiv, type Dim, mul, sub } from "../../../graph/dim/mod.ts";
import type { GpuLowering } from "../kernel.ts";
import { isBetween } from "./choice.ts";

/** What an attention reads, apart from its kernels. */
export interface AttentionCall {
  readonly shape: HeadShape;
  readonly style: SplitStyle;
  /** Rows of the step, and how many there must be: fewer are served otherwise. */
  readonly rows: Dim;
  readonly least: number;
  /** 0 where others are served otherwise, whose rows those are; default 1. */
  readonly where?: Dim;
  readonly rule: SpanRule;
  /** Values of the rule's uniforms. */
  readonly uniforms?: Readonly<Record<string, Dim>>;
  /** Most keys of a row, if known. */
  readonly keys: number | undefined;
  /** Keys that rows of the step see at most; absent: that is not known. */
  readonly reach?: Dim | undefined;
  /** The rows where those of the step share no keys, else 0; absent: that is not known. */
  readonly apart?: Dim | undefined;
  /** Bindings: q or those of a fresh row, k, v, sinks, those of the rule. */
  readonly storage: Readonly<Record<string, GpuSlice>>;
  /** Which of them the merging of splits needs. */
  readonly mergeStorage: Readonly<Record<string, GpuSlice>>;
  readonly sinks: boolean;
  /** Whether the result is written in 8 bit. */
  readonly quantized: boolean;
  /** Of a row that comes out of its product (gpu/kernels/attention/fresh.ts). */
  readonly fresh?: FreshRow;
}

/** Keys that rows are expected to see where that is not known. */
const USUAL_KEYS = 512;

/** Whether there are kernels for heads of a shape. */
export function canAttend(
  shape: HeadShape,
  { style, capabilities }: { readonly style: SplitStyle; readonly capabilities: Capabilities },
): boolean {
  return splitChoice(shape, { style, capabilities, keys: USUAL_KEYS }) !== undefined;
}

/** Lanes that share a group of 32 channels when they are quantised. */
const GROUP_LANES = 8;

/** Whether a kernel of a style can write the heads of values of so many channels in 8 bit. */
export function canQuantizeHeads(
  valueWidth: number,
  style: SplitStyle,
  { subgroupSize }: Capabilities,
): boolean {
  return valueWidth % 32 === 0 && (style !== "subgroup" || subgroupSize >= GROUP_LANES);
}

/**
 * Emits the dispatches of an attention for few rows and for many; where heads are too wide for those, row by row. Many
 * rows that share no keys are taken like few, with fewer splits: in a tile each would wait for all others.
 */
export function lowerAttention(lowering: GpuLowering, call: AttentionCall): void {
  const { rows, least, where = 1, shape, apart = 0, rule, style } = call;
  // As many splits for every row, whose keys they share out, whatever the other rows see.
  if (lowering.rowByRow) {
    return lowerSplit(lowering, call, { rows, most: lowering.most(rows) });
  }
  const { capabilities } = lowering, isMasked = rule.nothing !== undefined;
  const kind = { style, capabilities, isMasked, quantize: call.quantized };
  const choice = manyChoice(shape, kind);
  const few = mul(where, isBetween(rows, { least, most: ATTENTION_TUNING.fewRows }));
  const isMany = { least: ATTENTION_TUNING.fewRows + 1, most: Infinity };
  const alone = isBetween(apart, isMany);
  const many = sub(mul(where, isBetween(rows, isMany)), alone);
  if (few !== 0) lowerFew(lowering, { call, rows: mul(few, rows) });
  if (alone !== 0) lowerFew(lowering, { call, rows: mul(alone, apart), isMany: true });
  if (many === 0) return;
  if (!choice) {
    lowerSplit(lowering, { ...call, keys: 1 }, {
      rows: mul(many, rows),
      most: lowering.most(rows),
    });
    return;
  }
  const { storage, sinks, quantized, uniforms } = call;
  const { fewTeamRows: most } = ATTENTION_TUNING;
  const fewer = choice.hasTeams && !rule.pages ? isBetween(rows, { least: 0, most }) : 0;
  const ways = [
    [mul(many, fewer), manyChoice(shape, { ...kind, isFew: true })!],
    [mul(many, sub(1, fewer)), choice],
  ] as const;
  for (const [wanted, { rows: tileRows, tileHeads, shader }] of ways) {
    if (wanted === 0) continue;
    lowering.emit({
      shader: shader(rule, { sinks, quantize: quantized }),
      storage: { ...storage, y: resultOf(lowering) },
      uniforms: { rows, ...uniforms },
      workgroups: [mul(wanted, ceilDiv(rows, tileRows)), headTiles({ ...shape, tileHeads })],
    });
  }
}

function resultOf({ node: { outputs: [y] }, slice }: GpuLowering): GpuSlice {
  return slice(y!);
}

/** All keys in one workgroup where the step's rows see few, else split and merged. */
export function lowerFew(
  lowering: GpuLowering,
  { call, rows, isMany = false }: {
    readonly call: AttentionCall;
    readonly rows: Dim;
    readonly isMany?: boolean;
  },
): void {
  const { shape, style, rule, storage, sinks, quantized, uniforms = {}, fresh } = call;
  const direct = style === "subgroup" ? directChoice(shape, lowering.capabilities) : undefined;
  const isShort = direct ? seesFew(call) : 0;
  if (direct && isShort !== 0) {
    lowering.emit({
      shader: direct.shader(rule, { sinks, quantize: quantized }, fresh),
      storage: { ...storage, y: resultOf(lowering) },
      uniforms,
      workgroups: [headTiles({ ...shape, tileHeads: direct.tileHeads }), 1, mul(rows, isShort)],
    });
  }
  if (isShort === 1) return;
  const { fewRows } = ATTENTION_TUNING;
  lowerSplit(lowering, call, {
    rows: mul(rows, sub(1, isShort)),
    ...isMany ? { most: lowering.most(rows), atOnce: fewRows } : { most: fewRows },
  });
}

/** 1 where the rows of a step see few keys, else 0. */
function seesFew({ keys, reach }: AttentionCall): Dim {
  const { directKeys } = ATTENTION_TUNING;
  if (keys !== undefined && keys <= directKeys) return 1;
  return reach !== undefined ? isBetween(reach, { least: 0, most: directKeys }) : 0;
}

function lowerSplit(
  lowering: GpuLowering,
  call: AttentionCall,
  { rows, most, atOnce = 1 }: {
    readonly rows: Dim;
    readonly most: number;
    /** Rows that there are at least. */
    readonly atOnce?: number;
  },
): void {
  const { shape, style, rule, keys = USUAL_KEYS, mergeStorage, quantized, uniforms = {} } = call;
  const { sinks, ...storage } = call.storage;
  const choice = splitChoice(shape, {
    ...{ style, capabilities: lowering.capabilities, keys, rows: atOnce },
  })!;
  const { tileHeads, block, run, splits } = choice;
  const partial = lowering.scratch(splitBytes(shape, { choice, rows: most }));
  lowering.emit({
    shader: choice.shader(rule, call.fresh),
    storage: { ...storage, partial },
    uniforms,
    workgroups: [headTiles({ ...shape, tileHeads }), splits, rows],
  });
  lowering.emit({
    shader: attentionMerge({
      ...{ ...shape, rule, block, run, splits, sinks: sinks !== undefined },
      ...quantized && { quantize: style },
    }),
    storage: { partial, y: resultOf(lowering), ...sinks && { sinks }, ...mergeStorage },
    uniforms,
    workgroups: [shape.heads, rows],
  });
}
