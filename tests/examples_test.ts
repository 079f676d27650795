// The examples, as a reader would start them, and the least permissions that a model on disk needs.

import { assert, assertEquals } from "@std/assert";
import { randomPair, writeGgufAdapter } from "./support/adapters.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed, TINY_LLAMA } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { writeToyClassifier, writeWordTokenizer } from "./support/toy_encoders.ts";
import { unpackedVisionLanguage } from "./support/vision_language.ts";
import { vadSignal } from "./support/vad_signal.ts";

const ROOT = new URL("..", import.meta.url);

interface Example {
  readonly models: readonly string[];
  /** Makes what it reads; returns its arguments. */
  args?(folder: string): string[] | Promise<string[]>;
  /** Whether it writes into that folder. */
  readonly writes?: true;
  /** What it may do besides reading. */
  readonly permissions?: readonly string[];
}

const LANGUAGE_MODEL: Example = { models: ["smollm2-135m"] };
/** Takes a model as its first argument; a tiny one does, since others here have shown that the default one is found. */
const ANY_MODEL: Example = { models: [], args: (folder) => [chatModel(folder)] };
const EXAMPLES: Readonly<Record<string, Example>> = {
  hello: LANGUAGE_MODEL,
  streaming: LANGUAGE_MODEL,
  samplers: ANY_MODEL,
  batch: ANY_MODEL,
  custom_sampler: ANY_MODEL,
  speculation: ANY_MODEL,
  cancel: ANY_MODEL,
  worker: LANGUAGE_MODEL,
  beside_ui: ANY_MODEL,
  chat_history: {
    ...LANGUAGE_MODEL,
    writes: true,
    args: (folder) => [`${folder}/talk.json`, "Hello!"],
  },
  lora: { models: [], args: adapter },
  rerank: { models: [], args: reranker },
  folder_search: { models: ["minilm"], args: someDocs },
  tools: LANGUAGE_MODEL,
  schema: LANGUAGE_MODEL,
  ai_sdk: { ...ANY_MODEL, permissions: ["--allow-sys=hostname"] },
  server: { ...LANGUAGE_MODEL, permissions: ["--allow-net=127.0.0.1", "--allow-run"] },
  saved_session: {
    models: [],
    writes: true,
    args: (folder) => [`${folder}/session.bin`, chatModel(folder)],
  },
  embeddings: { models: ["minilm"] },
  classic_model: { models: [], args: forest },
  onnx_embeddings: { models: ["minilm", "minilm-int8"] },
  ocr: { models: ["ppocr-v4"], args: () => [fixturePath("pictures/page.png")] },
  image: {
    models: [],
    writes: true,
    args: (folder) => [fixturePath("pictures/sd_toy"), "a red cat", `${folder}/cat.png`],
  },
  image_to_image: {
    models: [],
    writes: true,
    args: (folder) => [
      ...[fixturePath("pictures/sd_toy"), "in winter"],
      ...[fixturePath("pictures/inputs/gradient.png"), `${folder}/winter.png`],
    ],
  },
  inpaint: {
    models: [],
    writes: true,
    args: (folder) => {
      const picture = fixturePath("pictures/inputs/gradient.png");
      return [fixturePath("pictures/sd_toy"), "a bird", picture, picture, `${folder}/bird.png`];
    },
  },
  speech: { models: ["silero-vad"], args: speechFile },
  transcribe: {
    models: ["silero-vad"],
    args: (folder) => [...speechFile(folder), fixturePath("speech/whisper_toy")],
  },
  classify_image: {
    models: [],
    args: () => [fixturePath("pictures/vit_toy"), fixturePath("pictures/page.png")],
  },
  find_pictures: {
    models: [],
    args: () => [
      ...[fixturePath("pictures/clip_toy"), "a page of text"],
      ...["page.png", "inputs/gradient.png"].map((name) => fixturePath(`pictures/${name}`)),
    ],
  },
  picture_chat: { models: [], args: pictureModel },
  quantize: {
    models: [],
    writes: true,
    args: (folder) => [
      ...[TINY_LLAMA, `${folder}/small.gguf`, fixturePath("text/opticks-book3.txt")],
    ],
  },
};

/** The tiny llama that chats, with room for long answers. */
function chatModel(folder: string): string {
  const from = fixturePath("models/llama_formats");
  for (const name of ["pytorch_model.bin", "tokenizer.model"]) {
    Deno.copyFileSync(`${from}/${name}`, `${folder}/${name}`);
  }
  const config = JSON.parse(Deno.readTextFileSync(`${from}/config.json`));
  const long = { ...config, max_position_embeddings: 4096 };
  Deno.writeTextFileSync(`${folder}/config.json`, JSON.stringify(long));
  const template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  Deno.writeTextFileSync(`${folder}/chat_template.jinja`, template);
  return folder;
}

/** A folder of a few texts, and a question. */
function someDocs(folder: string): string[] {
  for (const name of ["embeddings.md", "faq.md"]) {
    Deno.copyFileSync(new URL(`docs/${name}`, ROOT), `${folder}/${name}`);
  }
  return [folder, "How do I search by meaning?"];
}

/** A tiny model that sees, and a picture. */
function pictureModel(): string[] {
  const folder = unpackedVisionLanguage();
  return [`${folder}/qwen25_vl_toy`, `${folder}/images/a.png`];
}

/** A WAV file of 16 kHz with the signal of the golden file. */
function speechFile(folder: string): string[] {
  const samples = Int16Array.from(vadSignal(), (x) => Math.max(-1, Math.min(1, x)) * 32767);
  const header = new DataView(new ArrayBuffer(44));
  const text = (at: number, word: string) =>
    [...word].forEach((letter, i) => header.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, 36 + samples.byteLength, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  [1, 1].forEach((value, i) => header.setUint16(20 + 2 * i, value, true)); // PCM, one channel
  header.setUint32(24, 16000, true);
  header.setUint32(28, 32000, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, samples.byteLength, true);
  const path = `${folder}/speech.wav`;
  Deno.writeFileSync(path, new Uint8Array(header.buffer));
  Deno.writeFileSync(path, new Uint8Array(samples.buffer), { append: true });
  return [path];
}

/** The tiny llama and an adapter of llama.cpp's kind. */
function adapter(folder: string): string[] {
  writeGgufAdapter(`${folder}/a.gguf`, [randomPair("blk.0.attn_q.weight", [32, 32], 2)], {
    "general.architecture": ["string", "llama"],
    "adapter.lora.alpha": ["f32", 4],
  });
  return [TINY_LLAMA, `${folder}/a.gguf`];
}

/** A tiny BERT with a random head and a vocabulary of words. */
function reranker(folder: string): string[] {
  const toy = writeToyClassifier(fixturePath("models/bert"), 1);
  writeWordTokenizer(toy.folder);
  Deno.renameSync(toy.folder, `${folder}/reranker`);
  return [`${folder}/reranker`];
}

/** A forest of scikit-learn, and two rows. */
async function forest(folder: string): Promise<string[]> {
  const file = await Deno.open(fixturePath("onnx_classic.json.gz"));
  const text = file.readable.pipeThrough(new DecompressionStream("gzip"));
  const { cases } = await new Response(text).json();
  const { model } = cases.find(({ name }: { readonly name: string }) => name === "random forest");
  Deno.writeFileSync(`${folder}/forest.onnx`, Uint8Array.fromBase64(model));
  return [`${folder}/forest.onnx`, "0.5,1,-1,0", "-1,0,1,2"];
}

async function run(args: readonly string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    // Deno tells of packages that it fetches on stderr.
    args: ["run", "--quiet", "--no-prompt", "--no-check", ...args],
    cwd: ROOT,
    // Mesa's layers complain on stderr where no desktop has set the second.
    env: { NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp" },
  }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out!, err: err! };
}

Deno.test("every example is tested here and fits on a screen", () => {
  // Folders have tests of their own: deploy_test.ts, browser_engine_test.ts, edge_test.ts.
  const files = [...Deno.readDirSync(new URL("examples", ROOT))]
    .filter(({ isFile }) => isFile).map(({ name }) => name);
  assertEquals(files.sort(), Object.keys(EXAMPLES).map((name) => `${name}.ts`).sort());
  for (const name of files) {
    const lines = Deno.readTextFileSync(new URL(`examples/${name}`, ROOT)).split("\n");
    assert(lines.length <= 61, `${name} has ${lines.length} lines`);
  }
});

for (const [name, { models, args, writes, permissions = [] }] of Object.entries(EXAMPLES)) {
  testWith(models.map(modelNeed), `examples/${name}.ts runs`, async () => {
    const folder = Deno.makeTempDirSync();
    try {
      const write = writes ? [`--allow-write=${folder}`] : [];
      const allowed = ["--allow-read", "--allow-env", ...write, ...permissions];
      const command = [...allowed, `examples/${name}.ts`];
      const { code, out, err } = await run([...command, ...await args?.(folder) ?? []]);
      assertEquals([code, err], [0, ""]);
      assert(out.trim().length > 0, "it printed nothing");
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  });
}

Deno.test("a model on disk needs --allow-read of its file and nothing else", async () => {
  const { code, out, err } = await run([
    `--allow-read=${TINY_LLAMA}`,
    "tests/support/generate_once.ts",
    TINY_LLAMA,
  ]);
  assertEquals([code, err], [0, ""]);
  assertEquals(JSON.parse(out).ids.length, 4);
});

Deno.test("without permission to read, the error says what to allow", async () => {
  const { code, err } = await run(["tests/support/generate_once.ts", fixturePath("models/llama")]);
  assertEquals(code, 1);
  assert(err.includes("--allow-read="), err);
});
