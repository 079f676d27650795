// What quantising a file will do, before anything is written: the format of every tensor, and the
// container that can hold them. GGUF goes to GGUF where ggml has all formats and no weights are kept apart, so
// that llama.cpp opens the result; anything else becomes safetensors with a note of the formats. Norms, biases, tables and whatever
// is not of floats are copied as they are.

import { formatBytes, formats, getFormat, type NumberFormat } from "../../quant/mod.ts";
import { chooseFormat, type ModelFacts, type QuantPolicy } from "../../quant/policy.ts";
import { findIdleParts } from "../../quant/policy_use.ts";
import { layerOf, roleOf } from "../../quant/tensor_roles.ts";
import { UnsupportedError } from "../errors.ts";
import { containerName } from "../formats/container_names.ts";
import { type BlockLayout, scalars } from "../formats/scalars.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../formats/source.ts";

/** A tensor and what becomes of it. */
export interface PlannedTensor {
  readonly tensor: TensorInfo;
  /** Format in the new file. */
  readonly format: BlockLayout & Pick<NumberFormat, "ggmlType">;
  /** Bytes in the new file. */
  readonly byteLength: number;
  /** Undefined where bytes are copied: kept, or of the wanted format already. */
  readonly target: NumberFormat | undefined;
  /** The format of the policy that the rows do not fit. */
  readonly insteadOf: string | undefined;
  /** Weights that are kept apart. */
  readonly outliers: number;
  /** Why it gets its format, for people. */
  readonly reason: string;
}

/** What will be written. */
export interface QuantizePlan {
  /** `folder`: safetensors with the texts of a Hugging Face folder. */
  readonly container: "gguf" | "safetensors" | "folder";
  readonly tensors: readonly PlannedTensor[];
  /** What of the policy is without effect. */
  readonly warnings: readonly string[];
}

/**
 * Plans the quantisation of a file.
 *
 * @throws {RangeError} If the policy names a format that cannot be encoded.
 * @throws {UnsupportedError} If files of this kind cannot be written anew.
 */
export function planQuantization(file: WeightFile, policy: QuantPolicy): QuantizePlan {
  const model = modelFacts(file);
  const tensors = [...file.tensors.values()].map((tensor) => planTensor(tensor, policy, model));
  const weights = [...file.tensors.values()].filter(({ format }) => isFloatFormat(format));
  const warnings = findIdleParts(policy, weights, model);
  if (file.kind === "gguf") {
    const fits = tensors.every(({ format, outliers }) =>
      format.ggmlType !== undefined && outliers === 0
    );
    return { container: fits ? "gguf" : "safetensors", tensors, warnings };
  }
  if (file.kind === "safetensors" || file.kind === "pickle") {
    return { container: "folder", tensors, warnings };
  }
  throw new UnsupportedError(`files of the kind ${containerName(file.kind)} cannot be quantised`, {
    file: file.name,
    remedy: "Give a GGUF file, or a Hugging Face folder with safetensors or a PyTorch checkpoint",
  });
}

function planTensor(tensor: TensorInfo, policy: QuantPolicy, model: ModelFacts): PlannedTensor {
  const own = formats.get(tensor.format) ?? scalars.get(tensor.format) ?? getFormat(tensor.format);
  const kept = {
    tensor,
    format: own,
    byteLength: tensor.byteLength,
    target: undefined,
    insteadOf: undefined,
    outliers: 0,
    reason: "no floats: kept",
  };
  if (!isFloatFormat(tensor.format)) return kept;
  const { format, insteadOf, outliers, reason } = chooseFormat(policy, tensor, model);
  // What lies apart in the file that is read must be put back.
  const whole = { ...kept, reason, ...tensor.outliers && { target: getFormat(tensor.format) } };
  if (!format) return whole;
  if (format.name === tensor.format && outliers === 0) return { ...whole, insteadOf };
  const count = tensor.shape.reduce((product, size) => product * size, 1);
  const byteLength = formatBytes(format, count);
  return { tensor, format, byteLength, target: format, insteadOf, outliers, reason };
}

/** Whether values of a format are weights: whole numbers and bytes are tables. */
export function isFloatFormat(name: string): boolean {
  return !scalars.has(name) || name === "F64";
}

/** What policies ask about a model. */
export function modelFacts(file: WeightFile): ModelFacts {
  const { metadata, tensors } = file;
  const architecture = metadata.get("general.architecture");
  const number = (ggufKey: string, configKey: string): number | undefined =>
    first(metadata.get(`${architecture}.${ggufKey}`) ?? metadata.get(configKey));
  const heads = number("attention.head_count", "num_attention_heads");
  const kvHeads = number("attention.head_count_kv", "num_key_value_heads") ?? heads;
  const names = [...tensors.keys()];
  return {
    layers: Math.max(-1, ...names.map((name) => layerOf(name) ?? -1)) + 1,
    queryGroup: heads && kvHeads ? Math.floor(heads / kvHeads) : 1,
    experts: number("expert_count", "num_local_experts") ?? 0,
    tiedOutput: !names.some((name) => roleOf(name, tensors.get(name)!.shape) === "output"),
  };
}

/** A number, or the first positive one of a list with an entry a layer. */
function first(value: MetadataValue | undefined): number | undefined {
  if (typeof value === "number") return value;
  if (!ArrayBuffer.isView(value)) return undefined;
  for (const entry of value as Int32Array) if (entry > 0) return Number(entry);
  return undefined;
}
