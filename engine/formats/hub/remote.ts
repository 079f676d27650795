// Models on a web server: one file, or a file that needs others beside it (the parts of a split GGUF, the
// shards and texts of a Hugging Face checkpoint). What belongs to a model is told by its main file alone,
// so any server with plain paths will do.

import { FormatError } from "../../errors.ts";
import { checkPlainName, isMissing } from "../../io.ts";
import { unescaped } from "../../percent.ts";
import { asObject, parseStrictJson } from "../strict_json.ts";
import { type Downloaded, downloadFile, type DownloadOptions } from "./download.ts";
import { expectedOfHf, hfHeaders, type HfOptions, hfUrl } from "./hf.ts";
import type { Expected } from "./output.ts";
import { fetchParts, PIPELINE_INDEX } from "./pipeline_files.ts";
import type { ModelSource } from "./source_name.ts";

/** Where the files of a model are. */
export interface Remote {
  /** Name of the main file. */
  readonly main: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Address of a file beside the main one. */
  url(name: string): string;
  /** What the server says that a file must be. */
  expected(name: string): Promise<Expected>;
}

/** How files are fetched. */
export type FetchOptions = Omit<DownloadOptions, "url" | "target" | "expected" | "headers">;

/** A file of a model in its folder. */
export interface FetchedFile extends Downloaded {
  /** Plain file name. */
  readonly name: string;
}

// Texts that a checkpoint may have beside its weights; each is fetched if it is there.
const TEXTS = [
  ...["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"],
  ...["special_tokens_map.json", "added_tokens.json", "tokenizer.model", "spiece.model"],
  ...["sentencepiece.bpe.model", "qwen.tiktoken", "vocab.json", "merges.txt", "vocab.txt"],
  ...["tokenizer.bin", "chat_template.jinja", "chat_template.json"],
  "additional_chat_templates/tool_use.jinja",
  // Of models that listen.
  ...["preprocessor_config.json", "processor_config.json"],
  // Of embedding models: a list of parts, the longest text, and how tokens become one vector.
  ...["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"],
  "1_Pooling/config.json",
];

/** Weights that do not hold their own texts: safetensors, and what PyTorch and llama2.c write. */
const BARE_WEIGHTS = /\.(safetensors|bin|pt|pth)$/;

/** The server behind a source. */
export function openRemote(
  source: ModelSource & { kind: "url" | "hf" },
  options: HfOptions & FetchOptions & { readonly sha256?: string | undefined },
): Remote {
  if (source.kind === "url") {
    const main = unescaped(new URL(source.url).pathname.split("/").at(-1)!);
    checkPlainName(main, source.url);
    return {
      main,
      headers: {},
      url: (name) =>
        name === main
          ? source.url
          : new URL(name.split("/").map(encodeURIComponent).join("/"), source.url).href,
      expected: (name) => Promise.resolve(name === main ? { sha256: options.sha256 } : {}),
    };
  }
  const parts = source.file.split("/");
  // Graphs lie in a folder of their own, and texts above it.
  const own = /(^|\/)onnx\/[^/]+\.onnx$/.test(source.file) ? 2 : 1;
  const folder = parts.slice(0, -own);
  const headers = hfHeaders(options);
  const url = (name: string) => hfUrl({ ...source, file: [...folder, name].join("/") }, options);
  const main = parts.slice(-own).join("/");
  return {
    main,
    headers,
    url,
    async expected(name) {
      const expected = await expectedOfHf(url(name), { ...options, headers });
      return name === main && options.sha256 ? { ...expected, sha256: options.sha256 } : expected;
    },
  };
}

/**
 * Fetches the main file and everything it needs into a folder.
 *
 * @throws {SourceError} If something is not to be had.
 * @throws {FormatError} If an index names files outside its folder.
 */
export async function fetchRemote(
  remote: Remote,
  folder: string,
  options: (name: string) => FetchOptions,
): Promise<FetchedFile[]> {
  const fetchOne = async (name: string): Promise<FetchedFile> => {
    if (name.includes("/")) {
      await Deno.mkdir(`${folder}/${name.slice(0, name.lastIndexOf("/"))}`, { recursive: true });
    }
    const expected = await remote.expected(name);
    const result = await downloadFile({
      ...options(name),
      url: remote.url(name),
      target: `${folder}/${name}`,
      headers: remote.headers,
      expected,
    });
    return { name, ...result };
  };
  const files = [await fetchOne(remote.main)];
  if (remote.main === PIPELINE_INDEX) {
    const index = Deno.readFileSync(`${folder}/${remote.main}`);
    const shardsOf = (name: string) => shards(`${folder}/${name}`);
    return [...files, ...await fetchParts(index, { fetchOne, shardsOf })];
  }
  const { required, optional } = companions(remote.main, folder);
  for (const name of required) files.push(await fetchOne(name));
  for (const name of optional) {
    // Without a list of parts there are no folders of parts.
    const isPart = /^\d+_/.test(name);
    if (isPart && !files.some((file) => file.name === "modules.json")) continue;
    try {
      files.push(await fetchOne(name));
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return files;
}

/** Names of the files that a fetched main file needs, and of those that it can use. */
function companions(
  main: string,
  folder: string,
): { readonly required: readonly string[]; readonly optional: readonly string[] } {
  const part = /^(.*-)00001(-of-)(\d{5})(\.gguf)$/.exec(main);
  if (part) {
    const [, stem, of, count, end] = part;
    const names = Array.from(
      { length: Math.max(0, Number(count) - 1) },
      (_, i) => `${stem}${String(i + 2).padStart(5, "0")}${of}${count}${end}`,
    );
    return { required: names, optional: [] };
  }
  if (main.endsWith(".index.json")) {
    return { required: shards(`${folder}/${main}`), optional: TEXTS };
  }
  // Weights beside a graph, as exporters call them.
  if (main.endsWith(".onnx")) {
    return { required: [], optional: [`${main}_data`, `${main}.data`, ...TEXTS] };
  }
  return { required: [], optional: BARE_WEIGHTS.test(main) ? TEXTS : [] };
}

function shards(index: string): string[] {
  const map = asObject(asObject(parseStrictJson(Deno.readFileSync(index), index))?.weight_map);
  if (!map) throw new FormatError("has no weight_map", { file: index });
  const names = [...new Set(Object.values(map))];
  for (const name of names) {
    if (typeof name !== "string") throw new FormatError("must name files", { file: index });
    checkPlainName(name, index);
  }
  return names as string[];
}
