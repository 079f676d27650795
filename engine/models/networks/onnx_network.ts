// A network of an ONNX file, as Optimum exports the parts of diffusers' pipelines: its inputs have the names of the spec's.

import type { HostData } from "../../graph/graph.ts";
import type { GraphValue } from "../../onnx/running/graph_tensor.ts";
import { loadGraph } from "../../onnx/running/load_graph.ts";
import type { LoadGraphOptions } from "../../onnx/running/graph_types.ts";
import type { Network, Tensor } from "./network.ts";

/** One of an ONNX file. */
export interface OnnxNetwork extends Network {
  /** Names of its inputs. */
  readonly inputs: readonly string[];
  /** Numbers of a row of its first result, where the file says it. */
  readonly width: number | undefined;
}

/** What one is opened with. */
export interface OnnxNetworkOptions extends LoadGraphOptions {
  /** Which of its outputs are computed; default: the first alone. */
  readonly wanted?: ((outputs: readonly string[]) => readonly string[]) | undefined;
}

/**
 * Opens one.
 *
 * @throws As `loadGraph`.
 */
export async function openOnnxNetwork(
  path: string,
  { wanted = (outputs) => outputs.slice(0, 1), ...options }: OnnxNetworkOptions,
): Promise<OnnxNetwork> {
  const graph = await loadGraph(path, options);
  const outputs = wanted(graph.outputs.map(({ name }) => name));
  const width = graph.outputs[0]!.dims?.at(-1);
  return {
    width: typeof width === "number" ? width : undefined,
    inputs: graph.inputs.map(({ name }) => name),
    async run(inputs, signal) {
      const given = graph.inputs.filter(({ name }) => inputs[name]).map(({ name, type, dims }) => {
        const { data, dims: shape } = fitted(inputs[name]!, dims);
        return [name, { data: arrayOf(type, data), dims: shape }];
      });
      const results = await graph.run(Object.fromEntries(given), {
        outputs: [...outputs],
        ...signal && { signal },
      });
      return new Map(outputs.map((name) => [name, floatsOf(results[name]!)] as const));
    },
    release: () => Promise.resolve(),
    [Symbol.dispose]: () => graph.dispose(),
  };
}

function floatsOf(value: GraphValue): Float32Array {
  const { data } = value as { readonly data: HostData | Float16Array };
  return data instanceof Float32Array ? data : Float32Array.from(data as ArrayLike<number>);
}

/** Timesteps, one for each picture, are a number by itself or one for all in some files. */
function fitted(
  { data, dims }: Tensor,
  declared: readonly (number | string | undefined)[] | undefined,
): Tensor {
  if (dims.length !== 1 || !declared) return { data, dims };
  if (declared.length === 0) return { data: data.subarray(0, 1), dims: [] };
  return declared[0] === 1 ? { data: data.subarray(0, 1), dims: [1] } : { data, dims };
}

function arrayOf(type: string, values: Float32Array): HostData | Float16Array {
  if (type === "float16") return Float16Array.from(values);
  if (type === "int64") return BigInt64Array.from(values, (value) => BigInt(Math.round(value)));
  if (type === "int32") return Int32Array.from(values);
  return type === "float64" ? Float64Array.from(values) : values;
}
