// Which op a node means: by domain and name, in the version that the model's operator sets put in force;
// and the check of a whole model before anything runs, which lists every node that cannot be served.

import { UnsupportedError } from "../../errors.ts";
import type { OnnxGraph } from "../file/model.ts";
import type { OnnxOp } from "./op.ts";
import { onnxOpKey, onnxOps } from "../ops/mod.ts";
import {
  bodiesOf,
  broken,
  type ModelContext,
  namesReadBy,
  prepareGraph,
  type ScopedNode,
} from "./prepare.ts";

/** Newest versions of operator sets that this build was checked with. */
const NEWEST_OPSETS: readonly (readonly [domain: string, version: number])[] = [
  ["", 27],
  ["ai.onnx.ml", 5],
];

/** An op and the version in force. */
export interface FoundOp {
  readonly op: OnnxOp;
  readonly version: number;
}

/**
 * The op of a node.
 *
 * @throws {UnsupportedError} If there is none; the message names op, version and node.
 */
export function findOp({ file }: Pick<ModelContext, "file">, scoped: ScopedNode): FoundOp {
  const found = lookUp(scoped);
  if (typeof found !== "string") return found;
  throw new UnsupportedError(found, { file });
}

function lookUp({ node, opsets }: ScopedNode): FoundOp | string {
  const { opType, domain } = node;
  const at = `${domain && `${domain}.`}${opType} at ${node.name}`;
  const opset = opsets.get(domain);
  if (opset === undefined) {
    return `${at}: the model imports no operator set "${domain || "ai.onnx"}"`;
  }
  const op = onnxOps.get(onnxOpKey(domain, opType));
  if (!op) return `${at}: the op is not supported`;
  const version = op.versions.findLast((since) => since <= opset);
  if (version === undefined) return `${at}: it came with version ${op.versions[0]}, not ${opset}`;
  return { op, version };
}

/**
 * Checks every node of a model, also in bodies and functions: op, version, attributes.
 *
 * @throws {FormatError} At the first node whose attributes do not fit one another.
 * @throws {UnsupportedError} Listing all that is not served.
 */
export function checkSupport(
  context: ModelContext,
  { graph, opsets }: { readonly graph: OnnxGraph; readonly opsets: ReadonlyMap<string, number> },
): void {
  for (const [domain, newest] of NEWEST_OPSETS) {
    const used = opsets.get(domain) ?? newest;
    if (used <= newest) continue;
    const of = domain && ` of ${domain}`;
    throw new UnsupportedError(`uses operator set ${used}${of}; the newest known is ${newest}`, {
      file: context.file,
      remedy: "Export it for an older operator set",
    });
  }
  const problems = [...problemsOf(context, prepareGraph(context, { graph, opsets }).nodes)];
  if (problems.length === 0) return;
  throw new UnsupportedError(problems.join("; "), {
    file: context.file,
    remedy: problems.length > 1 ? `${problems.length} nodes are concerned` : undefined,
  });
}

function* problemsOf(context: ModelContext, nodes: readonly ScopedNode[]): Generator<string> {
  for (const scoped of nodes) {
    const found = lookUp(scoped);
    if (typeof found === "string") {
      yield found;
      continue;
    }
    try {
      found.op.read(scoped.node, found.version);
    } catch (error) {
      if (error instanceof RangeError) {
        throw broken(context, { node: scoped.node, message: error.message });
      }
      if (!(error instanceof TypeError)) throw error;
      yield `${scoped.node.opType} at ${scoped.node.name}: ${error.message}`;
    }
    for (const inner of bodyNodes(context, scoped)) yield* problemsOf(context, [inner]);
  }
}

// Bodies have functions to be expanded too; their names are checked when they are derived.
function bodyNodes(context: ModelContext, { node, opsets }: ScopedNode): ScopedNode[] {
  return bodiesOf(node).flatMap((body) => {
    const outer = new Set(body.nodes.flatMap((inner) => [...namesReadBy(inner)]));
    for (const { name } of body.outputs) outer.add(name);
    return [...prepareGraph(context, { graph: body, opsets, outer }).nodes];
  });
}
