// Loads a decoder of ONNX files: the same Model and Session as of any other container. The files may be closed
// afterwards.

import { createRuntime } from "../../decode/runtime.ts";
import type { OnnxFile } from "../file/onnx_file.ts";
import { withEnds } from "../../text/end_of_generation.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";
import type { Device } from "../../run/devices.ts";
import { fingerprintOf } from "../../decode/fingerprint.ts";
import { LoadedModel } from "../../decode/loaded_model.ts";
import { checkMemory } from "../../decode/memory.ts";
import type { LoadOptions } from "../../decode/model.ts";
import { readTextParts } from "../../text/text_parts.ts";
import { createDecoderExecutable, type ReadyStage } from "./executable.ts";
import { type PreparedDecoder, prepareDecoder } from "./prepare.ts";
import { createDecoderSource, soundMemory } from "./source.ts";

/** What to load, and where. */
export interface LoadDecoderInput {
  readonly name: string;
  readonly options: LoadOptions;
  readonly device: Device;
  /** When loading began, by `performance.now()`. */
  readonly start: number;
  /** Told while weights load. */
  readonly onProgress?:
    | ((progress: { readonly loadedBytes: number; readonly totalBytes: number }) => void)
    | undefined;
}

/** `load` for ONNX files. */
export async function loadDecoder(file: OnnxFile, input: LoadDecoderInput): Promise<LoadedModel> {
  const { name, options, device, start } = input;
  const prepared = await prepareDecoder(file, { options, device });
  if (device.inHostMemory) checkMemory(prepared.memory, { file: file.name });
  const { limits, vocabulary, config } = prepared;
  const text = await readTextParts(file, { template: options.chatTemplate });
  let tokenizer: Tokenizer | undefined;
  const stages = await readyStages(prepared, input);
  try {
    const { sound } = prepared;
    const source = sound && createDecoderSource(file, {
      ...{ sound, device, precision: limits.precision, slots: limits.sessions },
      memory: prepared.stages.at(-1)!.derived.ports.memory,
    });
    const executable = createDecoderExecutable(stages, { ...prepared, source });
    const runtime = createRuntime({
      name,
      network: prepared.info.network,
      encoder: undefined,
      source: sound && { ...await soundMemory(file, sound), words: prepared.words },
      executable,
      limits,
      start,
      vocabulary,
      candidates: prepared.candidates,
      hidden: 0,
      adapters: [],
      fingerprint: await fingerprintOf(
        { states: cacheFacts(prepared) },
        [...file.tensors.values()],
        limits,
      ),
      tokenizer: () => tokenizer ??= withEnds(text.tokenizer(), config.endIds),
      chatTemplate: text.chatTemplate,
    });
    const notes = [...executable.notes ?? [], ...device.note ? [device.note] : []];
    const info = { ...prepared.info, warnings: [...prepared.info.warnings, ...text.warnings] };
    return new LoadedModel(runtime, { info, device: device.backend.name, notes });
  } catch (error) {
    for (const { executable } of stages) executable.dispose();
    throw error;
  }
}

async function readyStages(
  { stages }: PreparedDecoder,
  { options: { signal }, device, onProgress }: LoadDecoderInput,
): Promise<ReadyStage[]> {
  const ready: ReadyStage[] = [];
  try {
    for (const { derived, plan } of stages) {
      const executable = await device.backend.prepare(plan, {
        slots: 1,
        hostSteps: true,
        ...signal && { signal },
        ...onProgress && { onProgress },
      });
      ready.push({ derived, executable });
    }
    return ready;
  } catch (error) {
    for (const { executable } of ready) executable.dispose();
    throw error;
  }
}

// Rows first, as caches of other models are: the fingerprint leaves their number out.
function cacheFacts({ stages }: PreparedDecoder) {
  return stages.flatMap(({ derived: { ports } }) =>
    ports.caches.map(({ name, dtype, dims, axis }) => ({
      name,
      dtype,
      shape: [0, ...dims.map((dim, at) => at === axis ? axis : Number(dim) || 1)],
    }))
  );
}
