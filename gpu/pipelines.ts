// Pipelines, cached by the text of their shader (spec MD-18): all layers of a model share one a kernel and
// width, and a second model of the same kind compiles nothing. Those that every answer needs are compiled together, while
// weights are still being read; others when a step first needs them.

import { COMPUTE_STAGE } from "./constants.ts";
import { failureOf, GpuFailure, messageOf } from "./failure.ts";
import type { Capabilities, GpuSlice, Shader } from "./kernel.ts";
import { textureEntry } from "./textures.ts";
import { accessOf, shaderText } from "./wgsl.ts";

/** A compiled shader. */
export interface Pipeline {
  readonly pipeline: GPUComputePipeline;
  /** Of its one bind group: the storage bindings in order, the textures, then the uniform block. */
  readonly layout: GPUBindGroupLayout;
}

/** The pipelines of a device. */
export interface Pipelines {
  /** The layout of the bind group of a shader for memory of these kinds. */
  layout(shader: Shader, storage: Readonly<Record<string, GpuSlice>>): GPUBindGroupLayout;
  /**
   * The pipeline of a shader for memory of these kinds.
   *
   * @throws {GpuFailure} `shader`, with the name and the compiler's words.
   */
  get(shader: Shader, storage: Readonly<Record<string, GpuSlice>>): Promise<Pipeline>;
  /**
   * The same without a promise, for shaders that turn out to be needed; a fault that the device finds later is told by
   * its next check.
   *
   * @throws {GpuFailure} `shader`, if it is refused at once.
   */
  getNow(shader: Shader, storage: Readonly<Record<string, GpuSlice>>): Pipeline;
  /** How many were compiled so far. */
  readonly count: number;
}

/**
 * An empty cache.
 *
 * @param report Hears of faults that are found after `getNow` has returned, and of a device that is lost meanwhile.
 */
export function createPipelines(
  device: GPUDevice,
  { capabilities, report }: {
    readonly capabilities: Capabilities;
    readonly report: (failure: GpuFailure) => void;
  },
): Pipelines {
  const pending = new Map<string, Promise<Pipeline>>();
  const compiled = new Map<string, Pipeline>();
  const layouts = new Map<string, GPUBindGroupLayout>();
  const texts = new WeakMap<Shader, Map<string, string>>();

  /** The text of a shader, which all layers of a model ask for. */
  function textOf(shader: Shader, storage: Readonly<Record<string, GpuSlice>>): string {
    let own = texts.get(shader);
    if (!own) texts.set(shader, own = new Map());
    const accesses = Object.keys(shader.storage).map((variable) => storage[variable]?.access);
    const key = accesses.join();
    let text = own.get(key);
    if (text === undefined) own.set(key, text = shaderText(shader, storage, capabilities));
    return text;
  }

  function layout(shader: Shader, storage: Readonly<Record<string, GpuSlice>>): GPUBindGroupLayout {
    const types = Object.keys(shader.storage).map((variable): GPUBufferBindingType =>
      accessOf(shader, { variable, accesses: storage }) === "read" ? "read-only-storage" : "storage"
    );
    const textures = Object.values(shader.textures ?? {});
    const uniforms: GPUBufferBindingType[] = Object.keys(shader.uniforms).length > 0
      ? ["uniform"]
      : [];
    const key = [...types, ...textures, ...uniforms].join();
    let found = layouts.get(key);
    if (!found) {
      const entries = [
        ...types.map((type) => ({ buffer: { type } })),
        ...textures.map(textureEntry),
        ...uniforms.map((type) => ({ buffer: { type } })),
      ].map((entry, binding) => ({ binding, visibility: COMPUTE_STAGE, ...entry }));
      layouts.set(key, found = device.createBindGroupLayout({ label: key, entries }));
    }
    return found;
  }

  async function compile(
    shader: Shader,
    code: string,
    layout: GPUBindGroupLayout,
  ): Promise<Pipeline> {
    let module: GPUShaderModule | undefined, scope: Promise<GPUError | null> | undefined;
    try {
      let now: GPUComputePipeline | undefined;
      // The scope is opened and closed without a pause, so that it holds no other shader's errors.
      device.pushErrorScope("validation");
      try {
        module = device.createShaderModule({ label: shader.name, code });
        if (capabilities.compilesInTurn) {
          now = device.createComputePipeline(descriptorOf(device, shader, { module, layout }));
        }
      } finally {
        scope = device.popErrorScope();
        scope.catch(() => {}); // told to whoever waits for it
      }
      const made = now ??
        device.createComputePipelineAsync(descriptorOf(device, shader, { module, layout }));
      const [pipeline, error] = await Promise.all([made, scope]);
      if (error) throw error;
      const result = { pipeline, layout };
      compiled.set(code, result);
      return result;
    } catch (error) {
      await scope?.catch(() => {});
      const failure = refused(shader, error, module && await explain(module, error));
      if (failure.kind === "lost") report(failure);
      throw failure;
    }
  }

  function compileNow(shader: Shader, code: string, layout: GPUBindGroupLayout): Pipeline {
    device.pushErrorScope("validation");
    try {
      const module = device.createShaderModule({ label: shader.name, code });
      return {
        pipeline: device.createComputePipeline(descriptorOf(device, shader, { module, layout })),
        layout,
      };
    } catch (error) {
      throw refused(shader, error);
    } finally {
      // A scope that a lost device does not close says nothing about the shader.
      device.popErrorScope().then((error) => error && report(refused(shader, error)), () => {});
    }
  }

  return {
    layout,
    get(shader, storage) {
      const code = textOf(shader, storage);
      const known = compiled.get(code);
      if (known) return Promise.resolve(known);
      let found = pending.get(code);
      if (!found) pending.set(code, found = compile(shader, code, layout(shader, storage)));
      return found;
    },
    getNow(shader, storage) {
      const code = textOf(shader, storage);
      let found = compiled.get(code);
      if (!found) {
        compiled.set(code, found = compileNow(shader, code, layout(shader, storage)));
      }
      return found;
    },
    get count() {
      return new Set([...pending.keys(), ...compiled.keys()]).size;
    },
  };
}

function descriptorOf(
  device: GPUDevice,
  { name }: Shader,
  { module, layout }: { readonly module: GPUShaderModule; readonly layout: GPUBindGroupLayout },
): GPUComputePipelineDescriptor {
  return {
    label: name,
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: "main" },
  };
}

/** What a shader is refused for; a device that is lost while it compiles says nothing about the shader. */
function refused({ name }: Shader, cause: unknown, why = messageOf(cause)): GpuFailure {
  const failure = failureOf(cause);
  return failure.kind === "lost" ? failure : new GpuFailure("shader", `${name}: ${why}`, { cause });
}

/** The compiler's first complaint, with its line. */
async function explain(module: GPUShaderModule, error: unknown): Promise<string> {
  const info = await module.getCompilationInfo().catch(() => undefined);
  const first = info?.messages.find(({ type }) => type === "error");
  if (!first) return messageOf(error);
  return `line ${first.lineNum}: ${messageOf(new Error(first.message))}`;
}
