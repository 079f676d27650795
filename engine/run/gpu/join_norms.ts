// Sums of split columns that a norm stands behind are added up and normed in one dispatch: of those that a prompt takes a
// layer, two fewer, and rows that it has written are not read again. Which is only seen when both nodes are lowered: a
// product adds its splits up, and the product behind it norms what it is given (lower/matmul_fused.ts), of one row within.

import type { Shader } from "../../../gpu/kernel.ts";
import { matmulReduceNormQ8 } from "../../../gpu/kernels/matmul/reduce_norm_q8.ts";
import type { Addends } from "../../../gpu/kernels/matmul/rows.ts";
import type { RmsNormQ8Params } from "../../../gpu/kernels/rms_norm_q8.ts";
import type { Count, ProgramDispatch } from "../../../gpu/program.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import type { JoinedPart } from "./kernel.ts";

/** A dispatch of a node, before it is joined with another one. */
export interface JoinableDispatch extends ProgramDispatch<DimEnv> {
  readonly joins?: JoinedPart;
}

type Dispatches = readonly JoinableDispatch[];

/** Shaders by what is joined, which all layers of a kind share: a text is made, and looked up, once. */
const shaders = new WeakMap<Addends, WeakMap<RmsNormQ8Params, Shader>>();

/** The dispatches of the steps of a plan, joined. */
export function joinNorms(
  plan: Plan,
  lists: readonly Dispatches[],
): ProgramDispatch<DimEnv>[][] {
  const joined = lists.map((list) => [...list]);
  for (let i = 0; i + 1 < joined.length; i++) {
    const [made] = plan.steps[i]!.node.outputs, [read] = plan.steps[i + 1]!.node.inputs;
    if (!made || !read || rootOf(plan, made) !== rootOf(plan, read)) continue;
    const [before, behind] = [joined[i]!, joined[i + 1]!];
    const at = behind.findIndex(({ joins }) => joins?.norm);
    const sums = before.filter(({ joins }) => joins?.sums);
    if (at < 0 || sums.length === 0) continue;
    const norm = behind[at]!;
    joined[i] = before.map((one) => sums.includes(one) ? joinedOf(one, norm) : one);
    joined[i + 1] = behind.with(at, {
      ...norm,
      workgroups: [unless(sums.map(({ workgroups: [count] }) => count!), norm.workgroups[0]!)],
    });
  }
  return joined;
}

/** Adds up splits and norms the rows, whenever the splits were to be added up. */
function joinedOf(sum: JoinableDispatch, norm: JoinableDispatch): JoinableDispatch {
  const { partial, y, ...added } = sum.storage, { gain } = norm.storage;
  const [count] = sum.workgroups, [rows] = norm.workgroups;
  return {
    ...sum,
    shader: shaderOf(sum.joins!.sums!, norm.joins!.norm!),
    storage: { partial: partial!, sum: y!, ...added, ...gain && { gain }, y: norm.storage.y! },
    uniforms: { rows: norm.uniforms.rows!, splits: sum.uniforms.splits! },
    workgroups: [(env) => valueOf(count!, env) > 0 ? valueOf(rows!, env) : 0],
  };
}

function shaderOf(sums: Addends, norm: RmsNormQ8Params): Shader {
  let own = shaders.get(sums);
  if (!own) shaders.set(sums, own = new WeakMap());
  let shader = own.get(norm);
  if (!shader) own.set(norm, shader = matmulReduceNormQ8(sums, norm));
  return shader;
}

/** A count, or 0 where one of others is not 0. */
function unless(others: readonly Count<DimEnv>[], count: Count<DimEnv>): Count<DimEnv> {
  return (env) => others.some((other) => valueOf(other, env) > 0) ? 0 : valueOf(count, env);
}

function valueOf(count: Count<DimEnv>, env: DimEnv): number {
  return typeof count === "number" ? count : count(env);
}
