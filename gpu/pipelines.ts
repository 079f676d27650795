// Pipelines, cached by the text of their shader (spec MD-18): all layers of a model share one a kernel and
// width, and a second model of the same kind compiles nothing. They are compiled together, while
// weights are still being read.

import { COMPUTE_STAGE } from "./constants.ts";
import { GpuFailure, messageOf } from "./failure.ts";
import type { Capabilities, GpuSlice, Shader } from "./kernel.ts";
import { accessOf, shaderText } from "./wgsl.ts";

/** A compiled shader. */
export interface Pipeline {
  readonly pipeline: GPUComputePipeline;
  /** Of its one bind group: the storage bindings in order, then the uniform block. */
  readonly layout: GPUBindGroupLayout;
}

/** The pipelines of a device. */
export interface Pipelines {
  /**
   * The pipeline of a shader for memory of these kinds.
   *
   * @throws {GpuFailure} `shader`, with the name and the compiler's words.
   */
  get(shader: Shader, storage: Readonly<Record<string, GpuSlice>>): Promise<Pipeline>;
  /** How many were compiled so far. */
  readonly count: number;
}

/** An empty cache. */
export function createPipelines(device: GPUDevice, capabilities: Capabilities): Pipelines {
  const pipelines = new Map<string, Promise<Pipeline>>();
  const layouts = new Map<string, GPUBindGroupLayout>();

  function layoutOf(types: readonly GPUBufferBindingType[]): GPUBindGroupLayout {
    const key = types.join();
    let layout = layouts.get(key);
    if (!layout) {
      const entries = types.map((type, binding) => ({
        binding,
        visibility: COMPUTE_STAGE,
        buffer: { type },
      }));
      layouts.set(key, layout = device.createBindGroupLayout({ label: key, entries }));
    }
    return layout;
  }

  async function compile(
    { name }: Shader,
    code: string,
    layout: GPUBindGroupLayout,
  ): Promise<Pipeline> {
    // The scope is opened and closed without a pause, so that it holds no other shader's errors.
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ label: name, code });
    const scope = device.popErrorScope();
    const compiled = device.createComputePipelineAsync({
      label: name,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: "main" },
    });
    try {
      const [pipeline, error] = await Promise.all([compiled, scope]);
      if (error) throw error;
      return { pipeline, layout };
    } catch (error) {
      await scope.catch(() => {});
      throw new GpuFailure("shader", `${name}: ${await explain(module, error)}`, { cause: error });
    }
  }

  return {
    get(shader, storage) {
      const code = shaderText(shader, storage, capabilities);
      let found = pipelines.get(code);
      if (!found) {
        const types = Object.keys(shader.storage).map((variable): GPUBufferBindingType =>
          accessOf(shader, variable, storage) === "read" ? "read-only-storage" : "storage"
        );
        if (Object.keys(shader.uniforms).length > 0) types.push("uniform");
        found = compile(shader, code, layoutOf(types));
        pipelines.set(code, found);
      }
      return found;
    },
    get count() {
      return pipelines.size;
    },
  };
}

/** The compiler's first complaint, with its line. */
async function explain(module: GPUShaderModule, error: unknown): Promise<string> {
  const info = await module.getCompilationInfo().catch(() => undefined);
  const first = info?.messages.find(({ type }) => type === "error");
  if (!first) return messageOf(error);
  return `line ${first.lineNum}: ${messageOf(new Error(first.message))}`;
}
