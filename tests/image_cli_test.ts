// `troodon image` on a toy pipeline: what it writes is what generateImage() gives.

import { assertEquals } from "@std/assert";
import { generateImage, loadImageModel, readPng, writePng } from "../mod.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";

const MODEL = fixturePath("pictures/sd_toy");
const FAST = ["--device", "wasm", "--threads", "1", "--steps", "2", "--model", MODEL];

Deno.test("image writes the picture of a prompt, changes one, and overwrites none", () =>
  withFolder(async (folder) => {
    using model = await loadImageModel(MODEL, { device: "wasm", threads: 1 });
    const size = { width: 16, height: 12 }, sizes = ["--width", "16", "--height", "12"];
    const output = `${folder}/a.png`, preview = `${folder}/preview.png`;
    const args = ["image", "a red cat", ...FAST, ...sizes, "--seed", "4", "-o", output];
    const made = await troodon([...args, "--preview", preview, "--scheduler", "euler"]);
    assertEquals([made.code, made.err], [0, ""]);
    assertEquals(made.out.replace(/[\d.]+ s\n/, ""), `${output}: 16 × 12, seed 4, `);
    const options = { steps: 2, seed: 4, ...size } as const;
    const { picture } = await generateImage(model, "a red cat", { ...options, scheduler: "euler" });
    assertEquals(readPng(Deno.readFileSync(output)).data, picture.data);
    assertEquals(readPng(Deno.readFileSync(preview)).data.length, picture.data.length);
    assertRefused(await troodon(args), 1, /a\.png: exists already and is not overwritten/);

    const white = { ...size, data: new Uint8Array(576).fill(255) };
    Deno.writeFileSync(`${folder}/mask.png`, writePng(white));
    const other = `${folder}/b.png`;
    const changed = await troodon([
      ...["image", "a blue cat", ...FAST, "--init", output, "--mask", `${folder}/mask.png`],
      ...["--strength", "0.5", "--negative", "a dog", "--seed", "5", "--json", "-o", other],
    ]);
    assertEquals([changed.code, changed.err], [0, ""]);
    const { ms: _, ...result } = JSON.parse(changed.out);
    assertEquals(result, { file: other, ...size, seed: 5, device: "wasm", warnings: [] });
    const expected = await generateImage(model, "a blue cat", {
      ...{ steps: 2, seed: 5, init: picture, mask: white, strength: 0.5, negative: "a dog" },
    });
    assertEquals(readPng(Deno.readFileSync(other)).data, expected.picture.data);
  }));

Deno.test("image paints several pictures by seeds that follow each other", () =>
  withFolder(async (folder) => {
    using model = await loadImageModel(MODEL, { device: "wasm", threads: 1 });
    const args = ["image", "a cat", ...FAST, "--count", "2", "--seed", "7"];
    const { code, out, err } = await troodon([...args, "--json", "-o", `${folder}/cat.v1.png`]);
    assertEquals([code, err], [0, ""]);
    const results = out.trim().split("\n").map((line) => JSON.parse(line));
    const names = [1, 2].map((i) => `${folder}/cat.v1-${i}.png`);
    assertEquals(results.map(({ file, seed }) => [file, seed]), [[names[0], 7], [names[1], 8]]);
    for (const [i, name] of names.entries()) {
      const { picture } = await generateImage(model, "a cat", { steps: 2, seed: 7 + i });
      assertEquals(readPng(Deno.readFileSync(name)).data, picture.data);
    }
    // All names must be free before the first is painted.
    Deno.removeSync(names[0]!);
    assertRefused(
      await troodon([...args, "-o", `${folder}/cat.v1.png`]),
      1,
      /cat\.v1-2\.png: exists/,
    );
    assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["cat.v1-2.png"]);
  }));

Deno.test("files that are too large for a picture or a sound are refused unread", () =>
  withFolder(async (folder) => {
    const file = `${folder}/large`;
    Deno.writeFileSync(file, new Uint8Array(0));
    Deno.truncateSync(file, 2 ** 33);
    for (
      const args of [
        ["image", "a cat", ...FAST, "--init", file, "-o", `${folder}/a.png`],
        ["classify-image", MODEL, file],
        ["transcribe", file],
      ]
    ) {
      assertRefused(await troodon(args), 1, /large: has 8589934592 bytes, which is too much for a/);
    }
  }));

Deno.test("image says what is missing or wrong in its flags", async () => {
  const refused = async (args: readonly string[], code: number, message: RegExp) =>
    assertRefused(await troodon(["image", ...args]), code, message);
  await refused(["x"], 2, /give --model MODEL/);
  await refused(["x", "-m", MODEL, "-o", "a.JPG"], 2, /a\.JPG: PNG is what is written/);
  await refused(["x", "-m", MODEL, "-o", "-"], 2, /--output -: PNG is what is written/);
  await refused(["x", "-m", MODEL, "--strength", "0.5"], 1, /strength: give --init, what/);
  await refused(
    ["x", ...FAST, "--width", "100000", "--height", "64", "-o", "/tmp/none.png"],
    1,
    /--width must be a multiple of 2 and at most 4096, not 100000/,
  );
  await refused(["x", "--model", MODEL, "--scheduler", "heun"], 2, /--scheduler/);
  await refused(
    ["x", "--model", fixturePath("models"), "-o", "/tmp/none.png"],
    1,
    /model_index\.json/,
  );
  // Told before anything is opened, and nothing is left of the try above.
  await refused(
    ["x", "--model", "none", "-o", "/tmp/no/such.png"],
    1,
    /no folder \/tmp\/no\/\. Create/,
  );
  assertEquals([...Deno.readDirSync("/tmp")].filter(({ name }) => /^none\.png/.test(name)), []);
});
