// A network of an ONNX file, as Optimum exports the parts of diffusers' pipelines: its inputs have the names of the spec's.

import type { HostData } from "../../graph/graph.ts";
import { loadGraph } from "../../onnx/running/load_graph.ts";
import type { LoadGraphOptions } from "../../onnx/running/graph_types.ts";
import type { Network, Tensor } from "./network.ts";

/**
 * Opens one.
 *
 * @throws As `loadGraph`.
 */
export async function openOnnxNetwork(path: string, options: LoadGraphOptions): Promise<Network> {
  const graph = await loadGraph(path, options);
  const output = graph.outputs[0]!.name;
  return {
    async run(inputs, signal) {
      const given = graph.inputs.filter(({ name }) => inputs[name]).map(({ name, type, dims }) => {
        const { data, dims: shape } = fitted(inputs[name]!, dims);
        return [name, { data: arrayOf(type, data), dims: shape }];
      });
      const results = await graph.run(Object.fromEntries(given), {
        outputs: [output],
        ...signal && { signal },
      });
      const { data } = results[output] as { readonly data: HostData | Float16Array };
      return data instanceof Float32Array ? data : Float32Array.from(data as ArrayLike<number>);
    },
    release() {},
    [Symbol.dispose]: () => graph.dispose(),
  };
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
