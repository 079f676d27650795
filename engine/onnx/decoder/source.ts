// What a decoder behind an encoder reads first, in Optimum's layout: encoder_model.onnx makes hidden states of the
// features of a window of sound, the branch or file for a first step makes keys and values of them, once, and those are
// inputs of every step. They are set aside by slot, since a graph has one memory of them.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { SourceMemory } from "../../decode/runtime.ts";
import { readSpeechConfig } from "../../formats/media/speech_config.ts";
import type { HostData } from "../../graph/graph.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import type { Device } from "../../run/devices.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import type { Step } from "../../run/step.ts";
import { readGenerationConfig } from "../../text/generation_config.ts";
import type { OnnxModel, OnnxValueInfo } from "../file/model.ts";
import { openOnnx } from "../file/open_onnx.ts";
import type { OnnxFile } from "../file/onnx_file.ts";
import { type OpenGraph, openGraph } from "../running/open_graph.ts";
import type { RunRequest } from "../running/program.ts";
import { type MemoryPort, portsOf } from "./ports.ts";

/** Sizes of a window of sound, as an encoder declares them. */
export interface SoundShape {
  readonly mels: number;
  readonly frames: number;
  /** Rows of hidden states. */
  readonly positions: number;
}

/** Sources of all slots. */
export interface DecoderSource {
  /** Rows of the source that each slot holds; 0: none. */
  readonly lengths: Int32Array;
  /** Reads a window of sound for the slot of a step. */
  read(step: Step, signal?: AbortSignal): Promise<void>;
  /**
   * Gives a graph the source of a slot.
   *
   * @throws {TypeError} If the slot has none.
   */
  feed(slot: number, input: (name: string) => HostData): void;
  forget(slot: number): void;
  dispose(): void;
}

const FEATURES = "input_features", HIDDEN = "last_hidden_state", STATES = "encoder_hidden_states";

/**
 * What an encoder takes and gives.
 *
 * @throws {UnsupportedError} If it reads no sound, or windows of any length.
 */
export function soundShapeOf({ file, graph }: OnnxModel): SoundShape {
  const dimsOf = (values: readonly OnnxValueInfo[], name: string) => {
    const type = values.find((value) => value.name === name)?.type;
    const dims = type?.kind === "tensor" ? type.shape : undefined;
    const [, ...sizes] = dims ?? [];
    if (dims?.length === 3 && sizes.every((size) => typeof size === "number")) return sizes;
    throw new UnsupportedError(
      `has no "${name}" of known size: encoders of sound are built alone`,
      {
        file,
        remedy: "Load the model from safetensors",
      },
    );
  };
  const [mels, frames] = dimsOf(graph.inputs, FEATURES) as [number, number];
  const [positions] = dimsOf(graph.outputs, HIDDEN) as [number, number];
  return { mels, frames, positions };
}

/** What sessions know of sources. @throws {FormatError} If files do not say how an answer begins, or features are made. */
export async function soundMemory(
  file: OnnxFile,
  { mels, frames, positions }: SoundShape,
): Promise<SourceMemory> {
  const { targetStart } = await readGenerationConfig(file);
  if (targetStart === undefined) {
    throw new FormatError("is missing, and without it no target can begin", {
      ...{ file: file.name, place: "decoder_start_token_id" },
    });
  }
  const shape = { mels, frames, framesPerPosition: frames / positions };
  return {
    ...{ capacity: positions, start: [targetStart], translation: undefined },
    sound: await readSpeechConfig(file, shape),
  };
}

/** Makes encoder and first step ready; weights are read at the first source. */
export function createDecoderSource(
  { source: models, name }: OnnxFile,
  { sound: { mels, frames, positions }, memory, device, precision, slots }: {
    readonly sound: SoundShape;
    readonly memory: readonly MemoryPort[];
    readonly device: Device;
    readonly precision: "fast" | "exact" | "strict";
    readonly slots: number;
  },
): DecoderSource {
  const runtime = {
    ...{ device, reference: createReferenceBackend(), maxBytes: 2 ** 32, limits: {} },
    precision: precision === "fast" ? "fast" : "exact",
  } as const;
  // The files of a model are closed when it is loaded; these are read when the first source comes.
  const open = ({ file }: OnnxModel) => openGraph(openOnnx(file), runtime);
  const encoder = open(models!.encoder), first = open(models!.first);
  const others = otherInputs(models!.first);
  const lengths = new Int32Array(slots);
  const kept = new Map<number, readonly HostData[]>();
  let resident = -1;

  return {
    lengths,
    async read({ features, slots: [slot] }, signal) {
      lengths[slot!] = 0;
      if (resident === slot) resident = -1;
      const dims = [1, mels, frames];
      const input: HostTensor = { dtype: "f32", shape: dims, data: features!.slice() };
      const hidden = await resultsOf(encoder, { [FEATURES]: input }, { outputs: [HIDDEN], signal });
      const outputs = memory.map(({ present }) => present);
      const made = await resultsOf(first, { ...others, [STATES]: hidden[0]! }, {
        outputs,
        signal,
      });
      kept.set(slot!, made.map(({ data }) => data));
      lengths[slot!] = positions;
    },
    feed(slot, input) {
      const own = kept.get(slot);
      if (!own || lengths[slot] === 0) {
        throw new TypeError(
          `Cannot compute: ${name} has heard nothing yet; call encode first`,
        );
      }
      if (resident === slot) return;
      memory.forEach((port, i) => (input(port.name) as Uint8Array).set(own[i] as Uint8Array));
      resident = slot;
    },
    forget(slot) {
      lengths[slot] = 0;
      kept.delete(slot);
    },
    dispose() {
      encoder.dispose();
      first.dispose();
    },
  };
}

async function resultsOf(
  graph: OpenGraph,
  inputs: Readonly<Record<string, HostTensor>>,
  request: RunRequest,
): Promise<HostTensor[]> {
  const results = await graph.run(new Map(Object.entries(inputs)), request);
  return request.outputs.map((output) => results.get(output) as HostTensor);
}

/** What a first step takes besides hidden states: a token, no past, and that it is the first. */
function otherInputs(model: OnnxModel): Record<string, HostTensor> {
  const { tokens, useCache, caches, memory } = portsOf(model);
  const empty = [...caches, ...memory].map(({ name, dtype, dims }): [string, HostTensor] => {
    const shape = dims.map((dim, axis) => typeof dim === "number" ? dim : axis === 0 ? 1 : 0);
    return [name, { dtype, shape, data: new Float32Array(0) }];
  });
  return {
    ...Object.fromEntries(empty),
    ...tokens && { [tokens.name]: { dtype: "i64", shape: [1, 1], data: new BigInt64Array(1) } },
    ...useCache && { [useCache.name]: { dtype: "bool", shape: [1], data: new Uint8Array(1) } },
  };
}
