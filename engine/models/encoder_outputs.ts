// What an encoder gives, of texts and of pictures alike: `hidden` f32[M, hidden] of all rows, and of the wholes asked for
// `vectors` f32[L, width] by the spec's pool and `scores` f32[L, labels] where their head judges that vector. A caller may
// want the state behind an earlier layer instead, as diffusion and vision-language models do; what only the rest would
// need is then not built.

import type { Dim } from "../graph/dim/mod.ts";
import type { Value } from "../graph/graph.ts";
import { type BlockContext, linear, norm } from "./blocks/context.ts";
import { buildLayer } from "./blocks/layer.ts";
import { pool } from "./blocks/pool.ts";
import { layerKinds } from "./layer_kinds.ts";

/** What of an encoder is wanted. */
export interface EncoderOutputs {
  /**
   * `hidden` is the state behind so many layers, without the norm behind the last: 0 is the embedding, -1 behind the last
   * layer, -2 behind the one before. Default: behind the last, with the norm where it is of all rows.
   */
  readonly hiddenAfter?: number | undefined;
  /** Whether there are vectors and scores, if the spec has them. Default true. */
  readonly pooled?: boolean | undefined;
  /** Whether `hidden` is given out where there are vectors. Default true. */
  readonly rows?: boolean | undefined;
}

/** Whether everything that a file holds is asked for. */
export function asksForAll({ hiddenAfter, pooled = true }: EncoderOutputs = {}): boolean {
  return hiddenAfter === undefined && pooled;
}

/** Runs layers and norm, and makes the outputs; the state of all rows behind them. */
export async function encoderOutputs(
  context: BlockContext,
  x: Value,
  { wholes, hiddenAfter, pooled = true, rows: givesRows = true }: EncoderOutputs & {
    /** Number of texts or pictures of a step that are wanted whole. */
    readonly wholes: Dim;
  },
): Promise<Value> {
  const { builder, spec, params } = context;
  const isPooled = pooled && spec.pool !== undefined;
  const count = depthOf(hiddenAfter, params.layers);
  const states = runLayers(context, {
    x,
    count: isPooled ? params.layers : count ?? params.layers,
  });
  const last = states.at(-1)!;
  const rows = spec.outputNorm === "rows" && states.length > params.layers
    ? norm(context, last, { role: "output_norm", name: "output_norm", size: params.hidden })
    : last;
  if (givesRows || !isPooled || count !== undefined) {
    builder.output("hidden", count === undefined ? rows : states[count]!);
  }
  if (isPooled) await giveVectors(context, rows, wholes);
  return rows;
}

/** @throws {RangeError} If there is no such layer. */
function depthOf(hiddenAfter: number | undefined, layers: number): number | undefined {
  if (hiddenAfter === undefined) return undefined;
  const depth = hiddenAfter < 0 ? layers + 1 + hiddenAfter : hiddenAfter;
  if (Number.isInteger(depth) && depth >= 0 && depth <= layers) return depth;
  throw new RangeError(
    `Cannot give the state behind layer ${hiddenAfter}: there are ${layers} layers`,
  );
}

/** States in front of and behind each layer. */
export function runLayers(
  context: BlockContext,
  { x, count = context.params.layers }: { readonly x: Value; readonly count?: number },
): Value[] {
  const { spec, params, file } = context;
  const kinds = layerKinds(spec, { params, file });
  const states = [x];
  for (let layer = 0; layer < count; layer++) {
    states.push(buildLayer(context, states.at(-1)!, { layer, kind: kinds[layer]! }));
  }
  return states;
}

async function giveVectors(context: BlockContext, rows: Value, wholes: Dim): Promise<void> {
  const { builder, spec, tensors } = context;
  const input = (name: string) => builder.input(name, [wholes], "i32");
  const inputs = {
    rows: input("logit_rows"),
    starts: () => input("wanted_starts"),
    ends: () => input("wanted_ends"),
  };
  const vector = await pool(context, { x: rows, inputs });
  const columns = vector.shape[1] as number;
  const head = (role: string, rule: "none" | "present" | "required") =>
    linear(context, vector, {
      ...{ role, name: role, rows: tensors.rows(role)!, columns, bias: rule },
    });
  const { projection } = spec.pool!;
  const isProjected = projection !== undefined && tensors.has("projection");
  builder.output("vectors", isProjected ? head("projection", projection) : vector);
  if (spec.classifier === "linear" && tensors.has("classifier")) {
    builder.output("scores", head("classifier", "required"));
  }
}
