// The engine in Chromium, through the pages of examples/browser: WASM on threads and on one, WebGPU by its software adapter,
// the tokens that Deno gives, and what browsers do to stored files.

import { Buffer } from "node:buffer";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { buildPages, pageHandler } from "../examples/browser/serve.ts";
import { classifyImage, embed, generate, load, readPng } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { testWith } from "./support/skip.ts";
import { writeWordTokenizer } from "./support/toy_encoders.ts";

const CHROMIUM = "/usr/bin/chromium";
const MODEL = fixturePath("models/llama_formats/llama.Q8_0.gguf");

const PICTURES = fixturePath("pictures/vit_toy"), PICTURE = fixturePath("pictures/page.png");
const SPEECH = fixturePath("speech/whisper_toy");

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

const TOKENS = 12;

/** What the fixture's model goes on with here. */
async function expectedText(): Promise<string> {
  using model = await load(MODEL, { device: "wasm" });
  return (await generate(model, "abc", { maxTokens: TOKENS, temperature: 0 }).result).text;
}

interface Place {
  readonly origin: string;
  /** Requests for the model, as ranges. */
  readonly asked: (string | null)[];
  readonly faults: { ignoresRange: boolean };
  readonly page: Page;
}

/** A page of a browser's own context, and its server. */
async function withPage(
  { browser, app, isolated = true }: {
    readonly browser: Browser;
    readonly app: string;
    readonly isolated?: boolean;
  },
  body: (place: Place) => Promise<void>,
): Promise<void> {
  const asked: (string | null)[] = [];
  const faults = { ignoresRange: false };
  const models = { "chat.gguf": MODEL, embed: `${app}/embed`, picture: PICTURES, speech: SPEECH };
  const answer = pageHandler({ app, models, isolated });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    if (!request.url.includes("/models/")) return answer(request);
    asked.push(request.headers.get("range"));
    return answer(faults.ignoresRange ? new Request(request.url) : request);
  });
  const context: BrowserContext = await browser.newContext();
  try {
    const page = await context.newPage();
    // A software GPU compiles its shaders on processors that others use as well.
    page.setDefaultTimeout(300_000);
    page.on("pageerror", (error) => console.error(error));
    await body({ origin: `http://127.0.0.1:${server.addr.port}`, asked, faults, page });
  } finally {
    await context.close();
    await server.shutdown();
  }
}

/** Waits until the page can be asked, or says what is wrong. @returns What it says. */
async function ready({ page, origin }: Place, device = "wasm"): Promise<string> {
  await page.goto(`${origin}/chat?device=${device}&tokens=${TOKENS}`);
  await page.waitForFunction(() => !(document.getElementById("text") as HTMLInputElement).disabled);
  return await page.textContent("#state") ?? "";
}

async function ask({ page }: Place, text: string): Promise<string> {
  await page.fill("#text", text);
  await page.click("form button");
  await page.waitForFunction(() => !(document.getElementById("text") as HTMLInputElement).disabled);
  return await page.locator(".model").last().textContent() ?? "";
}

/** Opens a page that takes a file, or a text, once its model is there. */
async function open({ page, origin }: Place, address: string): Promise<void> {
  await page.goto(`${origin}/${address}`);
  await page.waitForFunction(() =>
    document.querySelector<HTMLInputElement>("input:not([disabled])") !== null
  );
}

/** Searches three texts of words (writeWordTokenizer), looks at a picture, and listens: each as here. */
async function seeAndHear(
  place: Place,
  { embed: model }: { readonly embed: string },
): Promise<void> {
  const { page } = place;
  const list = () => page.locator("#found li").allTextContents();
  const texts = ["w7 w8", "w9 w10 w11", "w12"];
  await open(place, "search?model=/models/embed/&device=wasm");
  await page.fill("#texts", texts.join("\n"));
  await page.fill("#text", texts[1]!);
  await page.click("form button");
  await page.waitForFunction(() => document.querySelectorAll("#found li").length === 3);
  {
    using encoder = await load(model, { device: "wasm" });
    const [asked, ...vectors] = await embed(encoder, [texts[1]!, ...texts]);
    const score = (i: number) => asked!.reduce((sum, x, k) => sum + x * vectors[i]![k]!, 0);
    const lines = texts.map((text, i) => ({ text, score: score(i) }))
      .sort((a, b) => b.score - a.score)
      .map(({ text, score }) => `${score.toFixed(3)} ${text}`);
    assertEquals(await list(), lines);
  }

  await open(place, "picture?device=wasm");
  await page.setInputFiles("#file", PICTURE);
  await page.waitForFunction(() => document.querySelectorAll("#found li").length > 0);
  {
    using eyes = await load(PICTURES, { device: "wasm" });
    const [labels] = await classifyImage(eyes, readPng(await Deno.readFile(PICTURE)), { top: 5 });
    const lines = labels!.map(({ label, probability }) => `${probability.toFixed(3)} ${label}`);
    assertEquals(await list(), lines);
  }

  const wav = wavOf(Float32Array.from({ length: 16000 }, (_, n) => 0.3 * Math.sin(n * n / 3e4)));
  await open(place, "transcript?device=wasm");
  await page.setInputFiles("#file", { name: "talk.wav", mimeType: "audio/wav", buffer: wav });
  // The page may hear of the file after this, and be as idle until then as behind it.
  await page.waitForFunction(() =>
    !document.querySelector("input[disabled]") &&
    ["said", "state"].some((id) => document.getElementById(id)!.textContent !== "")
  );
  assertEquals(await page.textContent("#state"), "");
  // A model with random weights writes what it draws.
  assertMatch(await page.textContent("#said") ?? "", /^\d+\.\d s: /);
}

/** A WAV file of 16 bit at 16 kHz. */
function wavOf(samples: Float32Array): Buffer {
  const bytes = new Uint8Array(44 + 2 * samples.length), view = new DataView(bytes.buffer);
  const text = (at: number, word: string) => bytes.set(new TextEncoder().encode(word), at);
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  [1, 1].forEach((one, i) => view.setUint16(20 + 2 * i, one, true));
  [16000, 32000].forEach((rate, i) => view.setUint32(24 + 4 * i, rate, true));
  [2, 16].forEach((size, i) => view.setUint16(32 + 2 * i, size, true));
  text(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((x, i) => view.setInt16(44 + 2 * i, Math.round(32767 * x), true));
  return Buffer.from(bytes.buffer);
}

/** Takes the GPU away at the next thing that it is asked. */
async function loseGpu({ page }: Place): Promise<void> {
  const engine = page.workers().find((worker) => worker.url().endsWith("/engine.js"))!;
  await engine.evaluate(() => {
    const make = GPUDevice.prototype.createCommandEncoder;
    GPUDevice.prototype.createCommandEncoder = function (...given) {
      this.destroy();
      return make.apply(this, given);
    };
  });
}

/** Changes a stored file while no worker holds it. */
async function harm({ page, origin }: Place, how: "change" | "evict"): Promise<void> {
  await page.goto(`${origin}/check`);
  await page.evaluate(async (how) => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("troodon");
    if (how === "evict") return await folder.removeEntry("chat.gguf");
    const handle = await folder.getFileHandle("chat.gguf");
    const writable = await handle.createWritable({ keepExistingData: true });
    await writable.write({ type: "write", position: 5000, data: new Uint8Array(64).fill(255) });
    await writable.close();
  }, how);
}

testWith(
  [{ what: "Chromium", present: isThere(CHROMIUM), remedy: "apt-get install chromium" }],
  "the engine in a browser",
  async (t) => {
    const app = await Deno.makeTempDir();
    await buildPages(app);
    await Deno.mkdir(`${app}/embed`);
    for (const name of ["config.json", "model.safetensors"]) {
      await Deno.copyFile(fixturePath(`models/bert/${name}`), `${app}/embed/${name}`);
    }
    writeWordTokenizer(`${app}/embed`);
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"],
    });
    const expected = await expectedText();
    try {
      await t.step("threads, tokens, files that stay, change, or go, and every page", async () => {
        await withPage({ browser, app }, async (place) => {
          assertEquals(await ready(place), "computed on wasm");
          assertEquals(await ask(place, "abc"), expected);
          const first = place.asked.length;
          assert(first > 0 && place.asked.every((range) => range?.startsWith("bytes=")));
          assertEquals(await ready(place), "computed on wasm");
          assertEquals(place.asked.length, first, "a file that is whole is not asked for");
          for (const how of ["change", "evict"] as const) {
            await harm(place, how);
            const before = place.asked.length;
            await ready(place);
            assert(place.asked.length > before, how);
            assertEquals(await ask(place, "abc"), expected, how);
          }
          await harm(place, "evict");
          place.faults.ignoresRange = true;
          await ready(place);
          assertEquals(await ask(place, "abc"), expected, "a server that ignores ranges");
          place.faults.ignoresRange = false;
          await seeAndHear(place, { embed: `${app}/embed` });
        });
      });

      await t.step("a full quota is named", async () => {
        await withPage({ browser, app }, async (place) => {
          const { page, origin } = place;
          const devtools = await page.context().newCDPSession(page);
          await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 20_000 });
          assertStringIncludes(
            await ready(place),
            "the browser has no room for the 38496 bytes of the file",
          );
        });
      });

      await t.step("without isolation one thread is used, which is said", async () => {
        await withPage({ browser, app, isolated: false }, async (place) => {
          assertStringIncludes(await ready(place), "one thread is used");
          assertEquals(await ask(place, "abc"), expected);
        });
      });

      await t.step("kernels are checked, and the report is for copying", async () => {
        await withPage({ browser, app }, async ({ page, origin }) => {
          await page.goto(`${origin}/check?ops=add,softmax`);
          await page.click("#wasm");
          await page.waitForFunction(() =>
            (document.getElementById("report") as HTMLTextAreaElement).value !== ""
          );
          const report = await page.inputValue("#report");
          assertStringIncludes(report, "Chrome/");
          assertStringIncludes(report, "threads share memory");
          assert(/device wasm: \d+ kernels, cases: [1-9]\d* passed, 0 failed/.test(report), report);
        });
      });

      await t.step("WebGPU, where it starts, gives the tokens of Deno", async () => {
        await withPage({ browser, app }, async (place) => {
          const said = await ready(place, "gpu");
          if (said.includes("no WebGPU adapter")) return console.log(said);
          assertStringIncludes(said, "computed on gpu");
          assertEquals(await ask(place, "abc"), expected);
          await loseGpu(place);
          assertEquals(await ask(place, "abc"), expected, "a lost GPU: the CPU goes on");
        });
      });
    } finally {
      await browser.close();
      await Deno.remove(app, { recursive: true });
    }
  },
);
