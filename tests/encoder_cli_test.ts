// The commands for encoders and encoder-decoders on toy models: what they print is what the calls give.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  classify,
  classifyImage,
  embed,
  embedImage,
  fillMask,
  load,
  matchImages,
  readPicture,
  rerank,
  translate,
  writePng,
} from "../mod.ts";
import { troodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { writeToyClassifier, writeWordTokenizer } from "./support/toy_encoders.ts";

const FAST = ["--device", "wasm", "--threads", "1", "--precision", "exact"];
const OPTIONS = { device: "wasm", threads: 1, precision: "exact" } as const;

/** A folder with a toy model and its tokenizer, for as long as `use` runs. */
async function withFolder(
  write: () => string,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = write();
  try {
    await use(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

function copyOf(name: string, isSource = false): string {
  const folder = Deno.makeTempDirSync();
  for (const file of Deno.readDirSync(checkpointPath(name))) {
    Deno.copyFileSync(`${checkpointPath(name)}/${file.name}`, `${folder}/${file.name}`);
  }
  writeWordTokenizer(folder, isSource);
  return folder;
}

function classifier(labels: number): string {
  const { folder } = writeToyClassifier(checkpointPath("bert"), labels);
  writeWordTokenizer(folder);
  return folder;
}

async function answerOf(args: readonly string[], input = "") {
  const { code, out, err } = await troodon([...args, ...FAST], { stdin: input });
  assertEquals([code, err], [0, ""]);
  return out;
}

Deno.test("classify gives labels of texts, of lines and of pairs", () =>
  withFolder(() => classifier(3), async (folder) => {
    using model = await load(folder, OPTIONS);
    const plain = await answerOf(["classify", folder, "-t", "w5 w6"]);
    const [labels] = await classify(model, ["w5 w6"]);
    assertEquals(
      plain.trimEnd().split("\n").map((line) => line.trim()),
      labels!.map(({ label, probability }) => `${probability.toFixed(4)}  ${label}`),
    );
    const lines = JSON.parse(
      await answerOf(["classify", folder, "--json", "--top", "1"], "w5 w6\n\nw30\n"),
    );
    assertEquals(
      lines.results,
      (await classify(model, ["w5 w6", "", "w30"], { top: 1 }))
        .map((labels, i) => ({ text: ["w5 w6", "", "w30"][i], labels })),
    );
    const pair = JSON.parse(await answerOf(["classify", folder, "-t", "w5", "-p", "w6", "--json"]));
    assertEquals(pair.results, [{
      ...{ text: "w5", pair: "w6" },
      labels: (await classify(model, [{ text: "w5", pair: "w6" }]))[0],
    }]);
  }));

Deno.test("classify says which model has no labels, and that a text is missing", () =>
  withFolder(() => copyOf("bert"), async (folder) => {
    const refused = await troodon(["classify", folder, "-t", "w5", ...FAST]);
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.err, "cannot classify texts");
    const nothing = await troodon(["classify", folder, ...FAST], { stdin: "" });
    assertEquals(nothing.code, 2);
    assertStringIncludes(nothing.err, "--text");
  }));

Deno.test("rerank, fill-mask, embed and translate print what the calls give", async () => {
  await withFolder(() => classifier(1), async (folder) => {
    using model = await load(folder, OPTIONS);
    const given = ["w9 w10", "w30"];
    const out = JSON.parse(
      await answerOf(["rerank", folder, "-q", "w20", "-d", given[0]!, "-d", given[1]!, "--json"]),
    );
    const ranked = await rerank(model, "w20", given);
    assertEquals(out.results, ranked.map((one) => ({ ...one, document: given[one.index] })));
  });
  await withFolder(() => copyOf("bert"), async (folder) => {
    using model = await load(folder, OPTIONS);
    const filled = JSON.parse(
      await answerOf(["fill-mask", folder, "-t", "w5 [MASK]", "--top", "2", "--json"]),
    );
    assertEquals(filled.masks, await fillMask(model, "w5 [MASK]", { top: 2 }));
    const vectors = JSON.parse(await answerOf(["embed", folder, "-t", "w5 w6", "--json"]));
    const [vector] = await embed(model, ["w5 w6"]);
    const lines = JSON.parse(await answerOf(["embed", folder, "--json"], "w5 w6\n\nw7\n"));
    assertEquals(lines.texts, ["w5 w6", "", "w7"]); // an empty line has a vector too
    assertEquals(lines.vectors.length, 3);
    const printed: readonly number[] = vectors.results?.[0]?.vector ?? vectors.vectors[0];
    printed.forEach((value, i) => assert(Math.abs(value - vector![i]!) < 1e-6));
  });
  await withFolder(() => copyOf("m2m100", true), async (folder) => {
    using model = await load(folder, OPTIONS);
    const options = { from: "w5", to: "w6", maxTokens: 4 };
    const args = ["--from", "w5", "--to", "w6", "--max-tokens", "4"];
    const plain = await answerOf(["translate", folder, "-t", "w45 w91", ...args]);
    assertEquals(plain.trimEnd(), (await translate(model, "w45 w91", options)).trimEnd());
  });
});

Deno.test("classify-image and embed --image print what the calls give", async () => {
  const folder = fixturePath("pictures/clip_toy");
  const files = ["gradient.png", "glyphs.webp"].map((name) =>
    fixturePath(`pictures/inputs/${name}`)
  );
  const pictures = await Promise.all(
    files.map(async (file) => await readPicture(await Deno.readFile(file))),
  );
  using model = await load(folder, OPTIONS);
  const labels = ["cat", "letters"];
  const args = ["-l", "cat", "-l", "letters", "--template", "a {}", "--json"];
  const { results } = JSON.parse(await answerOf(["classify-image", folder, ...files, ...args]));
  const all = await classifyImage(model, pictures, { labels, template: "a {}" });
  assertEquals(results, all.map((labels, i) => ({ file: files[i], labels })));
  const plain = await answerOf(["classify-image", folder, files[0]!, ...args.slice(0, -1)]);
  assertEquals(
    plain.trimEnd().split("\n").map((line) => line.trim()),
    all[0]!.map(({ label, probability }) => `${probability.toFixed(4)}  ${label}`),
  );
  const given = ["--image", files[0]!, "--image", files[1]!, "-t", "a cat", "--json"];
  const { vectors, images, texts } = JSON.parse(await answerOf(["embed", folder, ...given]));
  assertEquals([images, texts], [files, ["a cat"]]);
  const wanted = [...await embedImage(model, pictures), ...await embed(model, ["a cat"])];
  assertEquals(vectors, wanted.map((vector) => [...vector]));
  const lines = await answerOf(["embed", folder, "-i", files[0]!, "-t", "a cat", "--similarity"]);
  const [match] = await matchImages(model, { images: pictures[0]!, texts: ["a cat"] });
  assertEquals(lines.split("\n")[1], `${match![0]!.similarity.toFixed(4)}  a cat`);
  for (
    const [more, code, message] of [
      [["--template", "{}"], 2, "--template is for --label"],
      [[], 1, "no labels of its own"],
    ] as const
  ) {
    const refused = await troodon(["classify-image", folder, files[0]!, ...more, ...FAST]);
    assertEquals(refused.code, code);
    assertStringIncludes(refused.err, message);
  }
  for (
    const [more, code, message] of [
      [["--lora", "a.gguf"], 2, "--lora does not go with an ONNX file"],
      [["--gpu", "no/dawn.node"], 1, "no/dawn.node: no such"],
      [["--offline"], 1, "clip.onnx"],
    ] as const
  ) {
    const refused = await troodon(["classify-image", "clip.onnx", files[0]!, ...more]);
    assertEquals(refused.code, code, refused.err);
    assertStringIncludes(refused.err, message);
  }
});

Deno.test("a picture comes through standard input and by address, and shows the colours below its opacity", async () => {
  const folder = fixturePath("pictures/vit_toy"),
    file = fixturePath("pictures/inputs/gradient.png");
  const bytes = await Deno.readFile(file), { width, height, data } = await readPicture(bytes);
  const run = (path: string, stdin?: Uint8Array) =>
    troodon(["classify-image", folder, path, ...FAST], stdin && { stdin });
  const wanted = await run(file);
  assertEquals(wanted.code, 0, wanted.err);
  // As transformers, which reads pictures as RGB and so leaves opacity out.
  const clear = new Uint8Array(4 * width * height);
  for (let i = 0; i < width * height; i++) clear.set(data.subarray(3 * i, 3 * i + 3), 4 * i);
  const png = writePng({ width, height, channels: 4, data: clear });
  assertEquals(await run("-", bytes), wanted);
  assertEquals(await run(`file://${file}`), wanted);
  assertEquals(await run(`data:image/png;base64,${png.toBase64()}`), wanted);
  await using server = servedBytes(bytes);
  assertEquals(await run(server.url), wanted);
  for (
    const [path, message] of [
      [`${server.url}/none`, `${server.url}/none: cannot be fetched: 404`],
      [`${server.url}/cut`, `${server.url}/cut: cannot be fetched: `],
      ["file://%zz", "file://%zz: no such file"],
      [`file://${folder}/%zz`, `${folder}/%zz: no such file`],
      ["data:image/png,a", "data: URL: is no picture in base64"],
      ["-", "standard input: is empty"],
    ] as const
  ) {
    const refused = await run(path);
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.err, message);
  }
});

/** A server with one file, at its root. */
function servedBytes(bytes: Uint8Array<ArrayBuffer>): AsyncDisposable & { readonly url: string } {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url), isRoot = pathname === "/";
    if (pathname === "/cut") return new Response(cutShort());
    return new Response(isRoot ? bytes : "none", { status: isRoot ? 200 : 404 });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A body that breaks off behind its first byte. */
function cutShort(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(new Uint8Array(1)),
    pull: () => Promise.reject(new Error("broken off")),
  });
}
