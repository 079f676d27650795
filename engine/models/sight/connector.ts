// From rows of a tower to rows of a language model: the steps of a spec of sight in their order. Squares of patches stand
// together (tower_layout.ts), so a square as one row is a view.

import { FormatError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { type Dim, formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { activated } from "../blocks/activation.ts";
import { type BlockContext, linear, weight } from "../blocks/context.ts";
import { metadataAt } from "../metadata.ts";
import type { SightSpec } from "./sight_spec.ts";

/** What a connector is built for. */
export interface ConnectorOptions {
  readonly steps: SightSpec["connector"]["steps"];
  /** Config of the whole model. */
  readonly metadata: WeightFile["metadata"];
  /** Edge of a square of patches that becomes a row, and how many squares there are. */
  readonly side: number;
  readonly squares: Dim;
  /** Width of the language model. */
  readonly hidden: number;
}

type Step = SightSpec["connector"]["steps"][number];

/** f32[side² · squares, width] → f32[squares, hidden], with the tensors of the context. */
export function connect(context: BlockContext, x: Value, options: ConnectorOptions): Value {
  const { steps, hidden } = options;
  const last = steps.findLastIndex(({ step }) => step === "linear");
  const rows = steps.reduce((value, step, i) => {
    const rows = i === last ? hidden : undefined;
    return STEPS[step.step](context, { ...options, x: value, step, name: `connector.${i}`, rows });
  }, x);
  checkWidth(context, { width: rows.shape[1] as number, hidden });
  return rows;
}

interface StepInput extends ConnectorOptions {
  readonly x: Value;
  readonly step: Step;
  readonly name: string;
  /** Of the last product: the width that the language model takes. */
  readonly rows: number | undefined;
}

const STEPS: Readonly<Record<Step["step"], (context: BlockContext, input: StepInput) => Value>> = {
  join({ builder }, { x, side, squares, name }) {
    const width = side ** 2 * (x.shape[1] as number);
    return builder.op("reshape", [x], { shape: [formatDim(squares), `${width}`] }, name)[0]!;
  },
  mean({ builder }, { x, side, squares, name }) {
    const shape = [formatDim(squares), `${side ** 2}`, `${x.shape[1]}`];
    const each = builder.op("reshape", [x], { shape }, `${name}.squares`)[0]!;
    return builder.op("reduce", [each], { kind: "mean", axes: [1], keep: false }, name)[0]!;
  },
  norm(context, { x, step: { kind = "rms", base = 0, role = "" }, name }) {
    const { builder, tensors, params: { normEpsilon: epsilon } } = context;
    const shape = [x.shape[1] as number];
    const weights = [weight(context, { role, shape })];
    if (kind === "rms") return builder.op("norm", [x, ...weights], { epsilon, base }, name)[0]!;
    if (tensors.has(`${role}_bias`)) weights.push(weight(context, { role: `${role}_bias`, shape }));
    return builder.op("norm", [x, ...weights], { epsilon, centred: true }, name)[0]!;
  },
  linear(context, { x, step: { role = "", bias = "none" }, name, rows }) {
    const columns = x.shape[1] as number, [outer, inner] = matrixShape(context, role);
    if (inner !== columns) {
      throw new FormatError(
        `takes rows of ${inner} numbers, and the tower gives rows of ${columns}: they are of different models`,
        { file: context.file, place: "projector of pictures" },
      );
    }
    checkWidth(context, { width: outer, hidden: rows ?? outer });
    return linear(context, x, { role, name, rows: outer, columns, bias });
  },
  activation(context, { x, step: { key, default: usual }, metadata, name }) {
    const stated = key === undefined ? undefined : metadataAt(metadata, key);
    const { spec: { feedForward: { activation: _, ...feedForward }, ...spec }, params } = context;
    return activated({
      ...context,
      spec: { ...spec, feedForward },
      params: { ...params, activation: String(stated ?? usual) },
    }, { x, name });
  },
};

/** Rows and columns of a stored matrix, as it multiplies. */
function matrixShape({ tensors, file }: BlockContext, role: string): [number, number] {
  const stored = tensors.stored(role);
  const [rows = 0, columns = 0] = stored?.tensors[0]?.shape ?? [];
  if (!stored) {
    // Names the tensor that is missing.
    tensors.get(role, []);
    throw new FormatError("is missing", { file, place: role });
  }
  const isTurned = typeof stored.rule !== "string" && stored.rule.transposed === true;
  return isTurned ? [columns, rows] : [rows, columns];
}

/** @throws {FormatError} If the language model takes other rows. */
function checkWidth(
  { file }: BlockContext,
  { width, hidden }: { readonly width: number; readonly hidden: number },
): void {
  if (width === hidden) return;
  throw new FormatError(
    `gives rows of ${width} numbers, and the language model takes rows of ${hidden}: they are of different models`,
    { file, place: "projector of pictures" },
  );
}
