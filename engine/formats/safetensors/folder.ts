// A Hugging Face folder: config.json as metadata, weights in model.safetensors or in shards that
// model.safetensors.index.json lists. Of the index only weight_map counts, which is checked against the shards both
// ways, and names in it never reach outside the folder; its metadata are sizes and notes, and the shards have sizes. Checkpoints of PyTorch have the same layout under other names, so the
// reader of one file is a parameter.

import { type ByteSource, closing, readBytes } from "../../byte_source.ts";
import { FormatError, SourceError } from "../../errors.ts";
import { checkPlainName, isMissing } from "../../io.ts";
import { openSafetensors } from "./safetensors.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../source.ts";
import { POLICY_KEY } from "../stored_formats.ts";
import { asObject, parseStrictJson } from "../strict_json.ts";

/** Opens a file of the folder by its plain name; throws SourceError when there is none. */
export type OpenInFolder = (name: string) => ByteSource | Promise<ByteSource>;

/** How one file of weights is read. */
export interface WeightsReader {
  /** Kind of the whole. */
  readonly kind: string;
  /** Opens one file or shard. */
  open(source: ByteSource): Promise<WeightFile>;
}

const SAFETENSORS: WeightsReader = { kind: "safetensors", open: openSafetensors };
const INDEX_NAME = "model.safetensors.index.json";
const MAX_TEXT = 100_000_000;

/**
 * Opens the weights of a folder through any way of opening its files.
 *
 * @param folder Path or URL, for messages.
 * @param weights Name of the index or of the one file of weights.
 * @param reader Reads one file; safetensors unless given.
 * @throws {SourceError} If a shard does not exist.
 * @throws {FormatError} If index and shards contradict each other, or a file is damaged.
 */
export async function openSafetensorsFolder(
  folder: string,
  { weights, open, reader = SAFETENSORS }: {
    readonly weights: string;
    readonly open: OpenInFolder;
    readonly reader?: WeightsReader | undefined;
  },
): Promise<WeightFile> {
  const parts = weights.endsWith(".json")
    ? await openShards(weights, open, reader)
    : [await openOwned(await open(weights), reader)];
  const close = () => parts.forEach((part) => part.close());
  const readText = (name: string) => readOptionalText(name, open);
  const readBytes = async (name: string) => (await readOptional(name, open))?.bytes;
  // A file that brings the metadata of another container along needs nothing beside it.
  if (parts[0].kind !== reader.kind) return parts[0];
  try {
    const metadata = withPolicy(await readConfig(open), parts[0].metadata);
    const tensors = merge(parts);
    return { kind: reader.kind, name: folder, metadata, tensors, readText, readBytes, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Name of the weights file in a folder listing, or undefined when there is no safetensors file. */
export function findSafetensors(names: readonly string[]): string | undefined {
  const all = names.filter((name) => name.endsWith(".safetensors"));
  const preferred = [INDEX_NAME, "model.safetensors"].find((name) => names.includes(name));
  return preferred ?? (all.length === 1 ? all[0] : undefined);
}

async function openShards(
  indexName: string,
  open: OpenInFolder,
  reader: WeightsReader,
): Promise<WeightFile[]> {
  const index = await readWhole(await open(indexName));
  const json = asObject(parseStrictJson(index.bytes, index.name));
  const map = asObject(json?.weight_map);
  if (!map || Object.keys(map).length === 0) {
    throw new FormatError("has no weight_map entries", { file: index.name });
  }
  const shardOf = new Map<string, string>();
  for (const [tensor, shard] of Object.entries(map)) {
    if (typeof shard !== "string") {
      throw new FormatError("must name a file", { file: index.name, place: tensor });
    }
    checkPlainName(shard, index.name);
    shardOf.set(tensor, shard);
  }
  const parts = new Map<string, WeightFile>();
  try {
    for (const shard of new Set(shardOf.values())) {
      parts.set(shard, await openShard(shard, { index: index.name, open, reader }));
    }
    checkIndex(index.name, shardOf, parts);
    return [...parts.values()];
  } catch (error) {
    parts.forEach((part) => part.close());
    throw error;
  }
}

async function openShard(
  name: string,
  { index, open, reader }: {
    readonly index: string;
    readonly open: OpenInFolder;
    readonly reader: WeightsReader;
  },
): Promise<WeightFile> {
  let source: ByteSource;
  try {
    source = await open(name);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    throw new SourceError(`the shard ${name} is missing`, {
      file: index,
      remedy: "Fetch the whole folder again",
      cause,
    });
  }
  return await openOwned(source, reader);
}

async function openOwned(source: ByteSource, reader: WeightsReader): Promise<WeightFile> {
  try {
    return await reader.open(source);
  } catch (error) {
    source.close();
    throw error;
  }
}

function checkIndex(
  index: string,
  shardOf: ReadonlyMap<string, string>,
  parts: ReadonlyMap<string, WeightFile>,
): void {
  for (const [tensor, shard] of shardOf) {
    if (!parts.get(shard)!.tensors.has(tensor)) {
      throw new FormatError(`places tensor ${JSON.stringify(tensor)} in ${shard}, which lacks it`, {
        file: index,
        remedy: "Index and shards are of different models: fetch the folder again",
      });
    }
  }
  for (const [shard, part] of parts) {
    for (const tensor of part.tensors.keys()) {
      if (shardOf.get(tensor) !== shard) {
        throw new FormatError(`does not place tensor ${JSON.stringify(tensor)} of ${shard} there`, {
          file: index,
          remedy: "Index and shards are of different models: fetch the folder again",
        });
      }
    }
  }
}

function merge(parts: readonly WeightFile[]): Map<string, TensorInfo> {
  return new Map(parts.flatMap((part) => [...part.tensors]));
}

/** The configuration, and what quantisation noted beside the weights. */
function withPolicy(config: WeightFile["metadata"] | undefined, own: WeightFile["metadata"]) {
  const policy = own.get(POLICY_KEY);
  return config && policy !== undefined
    ? new Map([...config, [POLICY_KEY, policy]])
    : config ?? own;
}

/** The configuration beside the weights; undefined where there is none. @throws {FormatError} If it is no JSON object. */
export async function readConfig(
  open: OpenInFolder,
  name: string = "config.json",
): Promise<ReadonlyMap<string, MetadataValue> | undefined> {
  const config = await readOptional(name, open);
  if (!config) return undefined;
  const json = asObject(parseStrictJson(config.bytes, config.name));
  if (!json) throw new FormatError("is not a JSON object", { file: config.name });
  return new Map(Object.entries(json));
}

async function readOptionalText(name: string, open: OpenInFolder): Promise<string | undefined> {
  const found = await readOptional(name, open);
  return found && new TextDecoder().decode(found.bytes);
}

async function readOptional(name: string, open: OpenInFolder): Promise<NamedBytes | undefined> {
  let source: ByteSource;
  try {
    source = await open(name);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  return await readWhole(source);
}

interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

async function readWhole(source: ByteSource): Promise<NamedBytes> {
  using _source = closing(source);
  if (source.size > MAX_TEXT) {
    throw new FormatError(`has ${source.size} bytes, the limit for a text file is ${MAX_TEXT}`, {
      file: source.name,
    });
  }
  return { name: source.name, bytes: await readBytes(source, { length: source.size }) };
}
