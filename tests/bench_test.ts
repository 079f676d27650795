// The micro benches have to load and to register what they measure; running them takes minutes and is
// `deno bench bench/`.

import { assert, assertEquals } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";
import { modelNeed, TINY_LLAMA } from "./support/models.ts";
import { writeRandomLlama } from "./support/random_llama.ts";
import { testWith } from "./support/skip.ts";

Deno.test("every bench file loads, and has a group, a baseline and rows", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["bench", "--allow-all", "--no-check", "--json", "--filter=no such bench", "bench/"],
    cwd: ROOT,
  }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals(code, 0, err);
  assertEquals(JSON.parse(out!).benches, []);
  const files = [...Deno.readDirSync(`${ROOT}/bench`)].map(({ name }) => name)
    .filter((name) => name.endsWith("_bench.ts"));
  for (const part of ["kernels", "tokenizer", "sampler"]) {
    assert(files.includes(`${part}_bench.ts`));
  }
  for (const name of files) {
    const text = Deno.readTextFileSync(`${ROOT}/bench/${name}`);
    assert(/\bgroup\b/.test(text) && /\bbaseline\b/.test(text), name);
  }
});

Deno.test("a micro bench measures (one of the sampler's)", async () => {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      "bench",
      "--allow-all",
      "--no-check",
      "--json",
      "--filter=/greedy/",
      "bench/sampler_bench.ts",
    ],
    cwd: ROOT,
  }).output();
  assertEquals(code, 0);
  const { benches } = JSON.parse(new TextDecoder().decode(stdout));
  assert(benches.length > 0);
  for (const { name, results } of benches) assert(results[0].ok.avg > 0, name);
});

/** Lines of figures, each with the fields that scripts rely on. */
function readFigures(text: string): { readonly case: string; readonly value: number }[] {
  const fields = [
    "bench",
    "case",
    "unit",
    "value",
    "peer",
    "peerValue",
    "ratio",
    "share",
    "machine",
  ];
  return text.trimEnd().split("\n").map((line) => {
    const figure = JSON.parse(line);
    for (const field of fields) {
      assert(Object.hasOwn(figure, field), `${field} is missing: ${line}`);
    }
    assert(figure.value > 0, line);
    return figure;
  });
}

Deno.test("troodon bench gives a line for each figure", async () => {
  const short = ["--prompt", "8", "--decode", "4", "--rounds", "1", "--json"];
  const { code, out, err } = await troodon(["bench", TINY_LLAMA, ...short]);
  assertEquals([code, err], [0, ""]);
  assertEquals(readFigures(out).map((figure) => figure.case), [
    ...["prefill 8", "decode 4", "load", "memory planned", "memory peak"],
  ]);
  const other = await troodon(["bench", fixturePath("speech/whisper_toy"), ...short.slice(0, 4)]);
  assertRefused(other, 1, /whisper_toy: needs a source.*that continues texts/);
});

Deno.test("bench gpu says at once which file is not there", async () => {
  for (const flag of ["--gpu", "--llama-bench"]) {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "tools/bench.ts", "gpu", "plain", flag, "no/such.file"],
      ...{ cwd: ROOT, stdout: "null" },
    }).output();
    assertEquals(code, 2);
    assertEquals(new TextDecoder().decode(stderr), "error: no/such.file: no such file\n");
  }
});

Deno.test("lists of numbers that are none, or too small, are refused before anything is measured", async () => {
  const lists = [["contexts", "abc", 0], ["contexts", "0,", 0], ["contexts", "-5", 0], [
    "prompt",
    "0",
    1,
  ]] as const;
  await Promise.all(lists.map(async ([flag, list, least]) => {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", `${ROOT}/tools/bench.ts`, "gpu", `--${flag}=${list}`],
      cwd: ROOT,
    }).output();
    assertEquals(
      new TextDecoder().decode(stderr).trim(),
      `error: --${flag} takes whole numbers from ${least} on, separated by commas: got "${list}"`,
    );
    assertEquals(code, 2);
  }));
});

Deno.test("troodon bench takes a file of K-quants without a tokenizer", async () => {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    const shape = {
      ...{ layers: 2, hidden: 256, heads: 4, kvHeads: 2, headDim: 64, feedForward: 512 },
      ...{ vocabulary: 600, context: 64, tiedOutput: true, noTokenizer: true },
    };
    await writeRandomLlama(path, shape, "Q4_K_M");
    const short = ["--prompt", "8", "--decode", "4", "--rounds", "1", "--json"];
    const { code, out, err } = await troodon(["bench", path, ...short]);
    assertEquals([code, err], [0, ""]);
    assertEquals(readFigures(out).length, 5);
  } finally {
    await Deno.remove(path);
  }
});

testWith(
  [modelNeed("smollm2-135m")],
  "deno task bench cpu gives a line for each figure",
  async () => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["task", "--quiet", "bench", "cpu", "decode", "prefill", "start", "memory"],
        ...["--no-peer", "--models", "smollm2-135m", "--json"],
        ...[
          "--threads",
          "1",
          "--rounds",
          "1",
          "--prompt",
          "8",
          "--decode",
          "4",
          "--contexts",
          "16",
        ],
      ],
      cwd: ROOT,
    }).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    assertEquals(code, 0, err);
    const kinds = new Set(
      readFigures(out!).map((figure) => figure.case.replace(/ (?!token).*/, "")),
    );
    for (const kind of ["decode", "prefill", "first token", "memory", "load"]) {
      assert(kinds.has(kind), `no case "${kind} …": ${[...kinds]}`);
    }
  },
);

Deno.test("bench formats measures products and what reading their weights takes", async () => {
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", "--no-check", "tools/bench.ts", "formats", "--backend", "wasm", "--json"],
      ...["--formats", "e0m4,i8pc", "--shapes", "512x8192,512x8192x4", "--threads", "1"],
      ...["--rounds", "1"],
    ],
    cwd: ROOT,
  }).output();
  assertEquals(code, 0);
  const figures = new TextDecoder().decode(stdout).trim().split("\n").map((line) =>
    JSON.parse(line)
  );
  assertEquals(
    figures.map(({ format, shape, bytes }) => [format, shape, bytes]),
    ["512x8192", "512x8192x4"].flatMap((shape) => [
      ["E0M4_G128", shape, 1024 * (4 * 64 + 16 * 128)],
      ["I8PC", shape, 1024 * (32 + 16 * 260)],
    ]),
  );
  for (const { share, gbps, gops, seconds } of figures) {
    assert(share > 0 && gbps > 0 && gops > 0 && seconds > 0);
  }
});

Deno.test("a bench of a paper has our figures beside the paper's, each with its hardware, and no ratio", async () => {
  const { md } = await import("../bench/papers/md.ts");
  const ids = Array.from({ length: 32 }, (_, i) => i + 3);
  const figures = await Array.fromAsync(md.run({
    models: [{ name: "tiny", path: TINY_LLAMA, ids }],
    ...{ prompts: [8], decode: 4, rounds: 1, power: false, load: { device: "wasm", threads: 1 } },
  }));
  const ours = figures.filter(({ peer }) => peer === null);
  assertEquals(ours.map((figure) => figure.case), [
    ...["prefill tiny, 8 + 4", "decode tiny, 8 + 4", "decode tiny, 8 + 4, with drafts"],
  ]);
  assert(ours.every(({ value }) => value > 0));
  const stated = figures.filter(({ peer }) => peer !== null);
  assert(stated.length > 20 && stated.every(({ peer }) => /Adreno|Intel/.test(peer!)));
  assert(figures.every(({ ratio }) => ratio === null));
  const { figureTable } = await import("../bench/support/figures.ts");
  assert(
    /\| prefill Gemma 2B, 1024 \+ 256 +\| tokens\/s \| not measured \|/.test(figureTable(figures)),
  );
});

Deno.test("the plot of docs/ is that of the results (deno run -A bench/plots.ts writes it anew)", async () => {
  const { cpuPlot } = await import("../bench/plots.ts");
  const drawn = cpuPlot();
  assertEquals(Deno.readTextFileSync(`${ROOT}/docs/plots/cpu.svg`), drawn);
  assert(drawn.match(/<rect [^>]*><title>/g)!.length >= 14);
});
