// What a quantised file has before its tensors, and beside itself: GGUF metadata with the mixture's number,
// a safetensors header, or the texts of a Hugging Face folder (config and tokenizer), copied.

import { closing } from "../byte_source.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { SourceError } from "../errors.ts";
import { sniffModel } from "../formats/sniff.ts";
import type { WeightFile } from "../formats/source.ts";
import { findGgufHeader, GGUF_HEADER_TENSOR, POLICY_KEY } from "../formats/stored_formats.ts";
import {
  createGgufHead,
  type GgufEntries,
  paddingAfter,
  readGgufEntries,
  setGgufIntegers,
  setGgufText,
} from "../formats/gguf/write.ts";
import { outlierNames } from "../formats/outliers.ts";
import { createSafetensorsHead, type SafetensorsTensor } from "../formats/safetensors/write.ts";
import { createFile, createFolder, openFile } from "../io.ts";
import type { PlannedTensor, QuantizePlan } from "./plan.ts";

/** What precedes the tensors. */
export interface Head {
  readonly bytes: Uint8Array;
  /** Zero bytes that follow a tensor of so many bytes. */
  paddingAfter(byteLength: number): number;
}

/** Files of a Hugging Face folder that a model is used with. */
const TEXTS = [
  ...["config.json", "generation_config.json", "chat_template.jinja", "chat_template.json"],
  ...["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"],
  ...["vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model"],
  ...["sentencepiece.bpe.model", "source.spm", "target.spm"],
  ...["modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "LICENSE"],
  ...["additional_chat_templates/tool_use.jinja", "config_sentence_transformers.json"],
];

// Version of ggml's block formats.
const QUANTIZATION_VERSION = 2;

/** The head of a plan's file. */
export async function createHead(
  file: WeightFile,
  { plan: { container, tensors }, policy }: {
    readonly plan: QuantizePlan;
    readonly policy: QuantPolicy;
  },
): Promise<Head> {
  const plain = tensors.map(factsOf);
  const facts = tensors.flatMap((planned, i) => [plain[i]!, ...outlierFacts(planned)]);
  const outliers = tensors.flatMap(({ tensor, outliers }) => outliers > 0 ? [tensor.name] : []);
  const { name, format, rules, outliers: share } = policy;
  const stated = JSON.stringify({ name, format, rules, outliers: share });
  if (container === "folder") {
    return {
      bytes: createSafetensorsHead(facts, { metadata: { [POLICY_KEY]: stated }, outliers }),
      paddingAfter: () => 0,
    };
  }
  const numbered = setGgufIntegers(await entriesOf(file), {
    "general.file_type": policy.ggufFileType,
    "general.quantization_version": QUANTIZATION_VERSION,
  });
  const entries = setGgufText(numbered, { key: POLICY_KEY, text: stated });
  if (container === "gguf") {
    const { bytes, alignment } = createGgufHead(entries, plain);
    return { bytes, paddingAfter: (byteLength) => paddingAfter(byteLength, alignment) };
  }
  const inner = createGgufHead(entries, []).bytes;
  const header = {
    name: GGUF_HEADER_TENSOR,
    shape: [inner.length],
    format: { name: "U8", blockSize: 1, blockBytes: 1 },
    byteLength: inner.length,
  };
  // The metadata stand first, so they are written with the head.
  const head = createSafetensorsHead([header, ...facts], { metadata: {}, outliers });
  const bytes = new Uint8Array(head.length + inner.length);
  bytes.set(head);
  bytes.set(inner, head.length);
  return { bytes, paddingAfter: () => 0 };
}

function factsOf({ tensor: { name, shape }, format, byteLength }: PlannedTensor) {
  return { name, shape, format, byteLength };
}

function outlierFacts({ tensor, outliers: count }: PlannedTensor): SafetensorsTensor[] {
  if (count === 0) return [];
  const { starts, columns, values } = outlierNames(tensor.name);
  const list = (name: string, length: number, format: string) => ({
    ...{ name, shape: [length], byteLength: 4 * length },
    format: { name: format, blockSize: 1, blockBytes: 4 },
  });
  return [
    list(starts, tensor.shape[0]! + 1, "I32"),
    list(columns, count, "I32"),
    list(values, count, "F32"),
  ];
}

async function entriesOf(file: WeightFile): Promise<GgufEntries> {
  const source = openFile(file.name);
  using _source = closing(source);
  // A file of an earlier quantisation is safetensors with the header inside.
  const isGguf = await sniffModel(source) === "gguf";
  return await readGgufEntries(isGguf ? source : await findGgufHeader(source));
}

/**
 * Copies what stands beside the weights into a folder.
 *
 * @throws {SourceError} If there is no config.json, without which the copy could not be loaded.
 */
export async function copyTexts(file: WeightFile, folder: string): Promise<void> {
  for (const name of TEXTS) {
    const bytes = await file.readBytes?.(name);
    if (!bytes && name === "config.json") {
      throw new SourceError("has no config.json beside it", {
        file: file.name,
        remedy: "Give the folder that holds config.json and the weights",
      });
    }
    if (!bytes) continue;
    if (name.includes("/")) createFolder(`${folder}/${name.split("/")[0]}`);
    const copy = createFile(`${folder}/${name}`);
    copy.write(bytes);
    copy.finish();
  }
}
