// quantize, quant-error and perplexity as their users meet them: exit codes and streams.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertLess,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { load, perplexity as scorePerplexity } from "../mod.ts";
import { listPartials } from "../engine/io.ts";
import { policyNames } from "../quant/policies.ts";
import { ROOT } from "../tools/support/task.ts";
import { troodon as runTroodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { writeGguf } from "./support/write_gguf.ts";

const troodon = (...args: readonly string[]) => runTroodon(args);

Deno.test("troodon quantize writes a file, says what it did, and refuses to do it twice", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/new.gguf`;
    const { code, out, err } = await troodon("quantize", TINY_LLAMA, path, "--format", "q4_k_m");
    assertEquals(code, 0, err);
    assertMatch(out, /^Q5_0 +\d+ tensors/m);
    assertMatch(out, /30.0 kB became 32.9 kB in/);
    assertMatch(err, /^warning: the new file is larger than the old one: 32\d+ bytes of 30\d+$/m);
    assertMatch(
      err,
      /^blk.0.attn_q.weight, .* and 8 more: rows of 32 are no multiple of Q4_K's block, stored as Q5_0$/m,
    );
    const again = await troodon("quantize", TINY_LLAMA, path, "--format", "q4_k_m");
    assertEquals([again.code, again.out], [1, ""]);
    assertMatch(again.err, /^error: .*exists already and is not overwritten/);
    const loaded = await troodon("info", path, "--json");
    assertEquals(loaded.code, 0, loaded.err);
  });
});

Deno.test("troodon quantize follows a policy in a file, and names what is wrong in it", async () => {
  await withFolder(async (folder) => {
    const policy = `${folder}/policy.json`;
    const rules = [{ pattern: "^blk\\.0\\.", format: "i8pc" }];
    await Deno.writeTextFile(policy, JSON.stringify({ format: "q4", rules }));
    const path = `${folder}/new.safetensors`;
    const { code, out, err } = await troodon(
      ...["quantize", TINY_LLAMA, path, "--policy", policy, "--json"],
    );
    assertEquals([code, err], [0, ""]);
    const { tensors, container } = JSON.parse(out);
    assertEquals(container, "safetensors");
    const formats = new Map(
      tensors.map(({ name, to }: { name: string; to: string }) => [name, to]),
    );
    assertEquals(formats.get("blk.0.attn_q.weight"), "I8PC_32");
    assertEquals(formats.get("blk.1.attn_q.weight"), "Q4_B32T1A");
    await Deno.writeTextFile(policy, '{"format":"q4","rulez":[]}');
    const wrong = await troodon("quantize", TINY_LLAMA, `${folder}/b`, "--policy", policy);
    assertEquals(wrong.code, 1);
    assertStringIncludes(wrong.err, `${policy}: Cannot use the policy: "rulez" is not one of`);
    const neither = await troodon("quantize", TINY_LLAMA, `${folder}/b`);
    assertEquals(neither.code, 2);
    const unknown = await troodon("quantize", TINY_LLAMA, `${folder}/b`, "--format", "q9");
    assertEquals(unknown.code, 2);
    assertMatch(unknown.err, /Cannot quantise to "q9": known are .*, E0M4_G128,/);
    const closed = await troodon("quantize", TINY_LLAMA, `${folder}/b`, "--format", "iq2_xxs");
    assertEquals(closed.code, 2);
    assertMatch(closed.err, /"iq2_xxs": it has no public encoder/);
  });
});

Deno.test("troodon quantize and info say what of a policy is without effect, and quantize what was left", async () => {
  await withFolder(async (folder) => {
    const policy = `${folder}/policy.json`, path = `${folder}/new.gguf`;
    const rules = [{ pattern: "nothing_matches_this", format: "q8_0" }];
    await Deno.writeTextFile(policy, JSON.stringify({ format: "q4_k", rules }));
    await Deno.writeTextFile(`${path}.1.partial`, "half");
    const warnings = [
      /^rule 1 of the policy fits no tensor: no name contains its pattern "nothing_matches_this"$/,
      /^no tensor is stored as Q4_K: no row fills its blocks, Q5_0 stands in$/,
      /new\.gguf\.1\.partial is left of a try that was killed/,
    ];
    const args = ["--policy", policy];
    const { code, err } = await troodon("quantize", TINY_LLAMA, path, ...args);
    assertEquals(code, 0, err);
    const lines = err.split("\n").filter((line) => line.startsWith("warning: "));
    assertEquals(lines.length, 3);
    const json = await troodon(
      ...["quantize", TINY_LLAMA, path.replace("new", "b"), ...args, "--json"],
    );
    const told: string[] = JSON.parse(json.out).warnings;
    assertEquals(told.length, 2);
    const shown = await troodon("info", TINY_LLAMA, ...args);
    const asJson = await troodon("info", TINY_LLAMA, ...args, "--json");
    for (const [i, warning] of warnings.entries()) {
      assertMatch(lines[i]!.slice("warning: ".length), warning);
      if (i === 2) continue;
      assertMatch(told[i]!, warning);
      assertMatch(JSON.parse(asJson.out).policyWarnings[i], warning);
      assertMatch(shown.out, new RegExp(`^warning: ${warning.source.slice(1)}`, "m"));
    }
  });
});

Deno.test("troodon quantize --help lists mixtures and formats, and a NaN's error names the flag", async () => {
  const { code, out } = await troodon("quantize", "--help");
  assertEquals(code, 0);
  const words = new Set(out.split(/[\s,.]+/));
  for (const name of [...policyNames, "e0m4_g128", "i4pc", "nvfp4", "w8a8"]) {
    assert(words.has(name.toLowerCase()), name);
  }
  assert(!words.has("iq2_xxs"), "nothing can be stored in it");
  await withFolder(async (folder) => {
    const data = new Uint8Array(4 * 64).fill(0xff);
    const tensors = [{ name: "blk.0.ffn_up.weight", dims: [32, 2], type: 0, data }];
    const input = `${folder}/bad.gguf`;
    await Deno.writeFile(
      input,
      writeGguf({ "general.architecture": ["string", "llama"] }, tensors),
    );
    for (const format of ["q8_0", "f32"]) {
      const bad = await troodon("quantize", input, `${folder}/b.gguf`, "--format", format);
      assertEquals(bad.code, 1);
      assertMatch(bad.err, /"blk.0.ffn_up.weight": value 0 is NaN.* set --saturate/);
    }
  });
});

Deno.test("Ctrl-C and a request to end stop troodon quantize before its end, with no file left", async () => {
  if (Deno.build.os === "windows") return;
  await withFolder(async (folder) => {
    const input = `${folder}/in.gguf`;
    const data = new Uint8Array(4 << 24);
    const tensors = [{ name: "blk.0.ffn_up.weight", dims: [1024, 1 << 14], type: 0, data }];
    await Deno.writeFile(
      input,
      writeGguf({ "general.architecture": ["string", "llama"] }, tensors),
    );
    for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
      const child = new Deno.Command(Deno.execPath(), {
        args: [
          ...["run", "-A", "--no-check", `${ROOT}/main.ts`],
          ...["quantize", input, `${folder}/out.gguf`, "--format", "q4_k"],
        ],
        ...{ stdin: "null", stdout: "null", stderr: "null" } as const,
      }).spawn();
      while (listPartials(`${folder}/out.gguf`).length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      child.kill(signal);
      assertEquals((await child.status).code, code);
      assertEquals([...Deno.readDirSync(folder)].length, 1);
    }
  });
});

Deno.test("troodon quantize rounds by a text, says by how much of it, and asks for what belongs together", async () => {
  await withFolder(async (folder) => {
    const text = `${folder}/text.txt`;
    const whole = await Deno.readTextFile(fixturePath("text/opticks-book3.txt"));
    await Deno.writeTextFile(text, whole.slice(0, 2000));
    const args = ["quantize", TINY_LLAMA, `${folder}/new.safetensors`, "--format", "e0m4_g32"];
    const { code, out, err } = await troodon(
      ...[...args, "--calibrate", text, "--calibrate-tokens", "200", "--threads", "1"],
    );
    assertEquals(code, 0, err);
    assertMatch(out, /^calibrated on \d+ tokens, with [\d.]+ kB of statistics$/m);
    assertMatch(err, /^rounded to nearest, as the text does not guide them: token_embd.weight$/m);
    const alone = await troodon(...args, "--method", "awq");
    assertEquals(alone.code, 2);
    assertMatch(alone.err, /--method needs --calibrate TEXT/);
    const idle = await troodon(
      ...["quantize", TINY_LLAMA, `${folder}/b.safetensors`, "--format", "q8_log"],
      ...["--calibrate", text],
    );
    assertEquals(idle.code, 1);
    assertMatch(
      idle.err,
      /Cannot round by a text by gptq: no matrix gets a format .*, only .*Q8_LOG/,
    );
    const both = await troodon(...args, "--calibrate", text, "--imatrix", text);
    assertEquals(both.code, 2);
    const other = await troodon(...args, "--imatrix", text);
    assertEquals(other.code, 1);
    assertMatch(other.err, /text.txt: is no importance matrix/);
  });
});

Deno.test("troodon info shows which roles have which format, why, and what stands apart", async () => {
  await withFolder(async (folder) => {
    const tried = await troodon("info", TINY_LLAMA, "--format", "q4_k_m", "--json");
    assertEquals(tried.code, 0, tried.err);
    type Row = Record<string, string | number>;
    const rows: Row[] = JSON.parse(tried.out).formats;
    const find = (list: readonly Row[], role: string) => list.find((row) => row.role === role);
    assertEquals(find(rows, "norm"), {
      ...{ role: "norm", format: "F32", reason: "kept" },
      ...{ tensors: 5, bytes: 640, outliers: 0 },
    });
    assertEquals(
      find(rows, "attention_q")!.reason,
      "no rule, rows do not fill blocks of Q4_K",
    );
    const policy = `${folder}/policy.json`, path = `${folder}/new.safetensors`;
    const rules = [{ roles: ["ffn_down"], format: "q4_b64t1" }];
    await Deno.writeTextFile(policy, JSON.stringify({ format: "q8_0", rules, outliers: 0.01 }));
    await troodon("quantize", TINY_LLAMA, path, "--policy", policy);
    const stored = await troodon("info", path);
    assertEquals(stored.code, 0, stored.err);
    assertMatch(stored.out, /^ {2}ffn_down +Q4_B64T1 +2 +[\d.]+ kB +rule 1 +40 outliers apart$/m);
    assertMatch(stored.out, /^ {2}norm +F32 +5 +640 B +kept *$/m);
    const flagged = await troodon(
      ...["quantize", TINY_LLAMA, `${folder}/flag.safetensors`, "--format", "q4_0"],
      ...["--outliers", "0.02"],
    );
    assertMatch(flagged.out, /^Q4_0 .*outliers apart$/m);
    const many = await troodon(
      ...["quantize", TINY_LLAMA, `${folder}/b.safetensors`, "--format", "q4_0"],
      ...["--outliers", "0.2"],
    );
    assertEquals(many.code, 2);
    assertMatch(many.err, /--outliers is 0.2: at most 0.05/);
    const own = await troodon("info", TINY_LLAMA, "--json");
    assertEquals(find(JSON.parse(own.out).formats, "ffn_up")!.reason, "");
  });
});

Deno.test("mistakes that are made first are told with what to do", async () => {
  await withFolder(async (folder) => {
    const out = `${folder}/out.gguf`;
    const llama2c = fixturePath("models/llama_formats/llama2c_v2_q80.bin");
    const rows: readonly (readonly [readonly string[], number, RegExp])[] = [
      [["quantize", TINY_LLAMA, out, "--format", "q4km"], 2, /did you mean Q4_K_M\? known are/],
      [["info", TINY_LLAMA, "--format", "q3k"], 2, /did you mean Q3_K\?/],
      [
        ["quantize", TINY_LLAMA, `${folder}/no/out.gguf`, "--format", "q4_0"],
        1,
        /out.gguf: there is no folder .*no\/\. Create it first$/m,
      ],
      [
        ["quantize", TINY_LLAMA, `${TINY_LLAMA}/out.gguf`, "--format", "q4_0"],
        1,
        /out.gguf: a part of its path is a file and no folder\. Check the path$/m,
      ],
      [
        ["quantize", TINY_LLAMA, out, "--format", "q4_0", "--outliers", "0.01"],
        1,
        /becomes safetensors, as GGUF has no place for outliers/,
      ],
      [
        ["quantize", TINY_LLAMA, out, "--format", "q4_0", "--calibrate", TINY_LLAMA],
        1,
        /is no text in UTF-8/,
      ],
      [
        ["quantize", llama2c, out, "--format", "q4_0"],
        1,
        /llama2.c checkpoint cannot be quantised/,
      ],
      [
        ["quant-error", TINY_LLAMA, fixturePath("models/llama")],
        1,
        /"token_embd.weight": is missing. Give another file of the model that/,
      ],
      [["perplexity", TINY_LLAMA, "--text", `${folder}/none.txt`], 1, /none.txt: no such file/],
    ];
    for (const [args, code, message] of rows) {
      const outcome = await troodon(...args);
      assertEquals([outcome.code, outcome.out], [code, ""], outcome.err);
      assertMatch(outcome.err, message);
      assertEquals(outcome.err.trimEnd().split("\n").length, 1, outcome.err);
    }
    assertEquals([...Deno.readDirSync(folder)], []);
    await Deno.writeTextFile(`${folder}/short.txt`, "a few words, and no more");
    const calibrated = await troodon(
      ...["quantize", TINY_LLAMA, out, "--format", "q4_0", "--calibrate", `${folder}/short.txt`],
    );
    assertMatch(
      calibrated.err,
      /^warning: the text has \d+ tokens: calibration wants some thousand/m,
    );
    const scored = await troodon(
      "perplexity",
      TINY_LLAMA,
      "--text",
      `${folder}/short.txt`,
      "--json",
    );
    assertEquals([scored.code, JSON.parse(scored.out).window], [0, 64], scored.err);
  });
});

Deno.test("troodon quant-error compares formats side by side", async () => {
  const { code, out, err } = await troodon(
    ...["quant-error", TINY_LLAMA, "--format", "q4", "--format", "i8pc", "--json"],
  );
  assertEquals([code, err], [0, ""]);
  const [four, eight] = out.trim().split("\n").map((line) => JSON.parse(line));
  assertEquals([four.format, four.bits], ["Q4", 5]);
  for (const { total } of [four, eight]) {
    assert(total.min >= 0 && total.mean > total.min && total.max > total.mean && total.std > 0);
  }
  assertLess(eight.total.mean, four.total.mean);
  assertEquals((await troodon("quant-error", TINY_LLAMA)).code, 2);
});

Deno.test("troodon quant-error says which tensors get a stand-in, as quantize does", async () => {
  const args = ["quant-error", TINY_LLAMA, "--format", "q4_b64t1", "--format", "q8_0"];
  const { code, out, err } = await troodon(...args);
  assertEquals(code, 0, err);
  assertMatch(
    err,
    /^token_embd.weight, .* and \d+ more: rows of 32 are no multiple of Q4_B64T1's block, stored as F16$/m,
  );
  assert(!err.includes("Q8_0"), "its blocks fill all rows");
  assertMatch(out, /^Q4_B64T1 /m);
  const json = await troodon(...args, "--json");
  type Tensor = { name: string; format: string; insteadOf?: string };
  const [blocks, rows] = json.out.trim().split("\n").map((line): Tensor[] =>
    JSON.parse(line).tensors
  );
  const of = (tensors: Tensor[], name: string) => tensors.find((tensor) => tensor.name === name)!;
  const { format, insteadOf } = of(blocks!, "blk.0.attn_q.weight");
  assertEquals([format, insteadOf], ["F16", "Q4_B64T1"]);
  assertEquals(of(blocks!, "blk.0.ffn_down.weight").insteadOf, undefined);
  assert(rows!.every((tensor) => tensor.insteadOf === undefined));
});

Deno.test("troodon quant-error puts the mean errors of a layer's matrices side by side", async () => {
  const two = ["--format", "e0m4_g32", "--format", "int4_g32", "--only", "^blk\\.0\\."];
  const { code, out, err } = await troodon("quant-error", TINY_LLAMA, ...two, "--tensors");
  assertEquals([code, err], [0, ""]);
  const rows = out.split("\n").filter((line) => line.startsWith("blk.")).map((line) =>
    line.trim().split(/ +/)
  );
  assertEquals(rows.length, 7);
  const json = await troodon("quant-error", TINY_LLAMA, ...two, "--json");
  const [first, second] = json.out.trim().split("\n").map((line) => JSON.parse(line).tensors);
  rows.forEach(([name, e0m4, int4, ratio], i) => {
    assertEquals([name, first.length], [first[i].name, 7]);
    assertAlmostEquals(Number(e0m4), first[i].mean, 1e-3 * first[i].mean);
    assertAlmostEquals(Number(int4), second[i].mean, 1e-3 * second[i].mean);
    assertAlmostEquals(Number(ratio), first[i].mean / second[i].mean, 1e-3);
  });
  const nothing = await troodon("quant-error", TINY_LLAMA, ...two.slice(0, 4), "--only", "^none$");
  assertEquals(nothing.code, 2);
});

Deno.test("troodon perplexity scores a text", async () => {
  await withFolder(async (folder) => {
    const text = (await Deno.readTextFile(fixturePath("text/opticks-book3.txt"))).slice(0, 600);
    await Deno.writeTextFile(`${folder}/text.txt`, text);
    const args = ["perplexity", TINY_LLAMA, "--text", `${folder}/text.txt`, "--window", "32"];
    const { code, out, err } = await troodon(...args, "--json");
    assertEquals([code, err], [0, ""]);
    const { perplexity, scored, windows, window } = JSON.parse(out);
    assertEquals(window, 32);
    assert(windows >= 5 && scored > 100);
    using model = await load(TINY_LLAMA, { contextLength: 32, logitRows: 32 });
    const expected = await scorePerplexity(model, text, { window: 32 });
    assertAlmostEquals(perplexity, expected.perplexity, 1e-3 * expected.perplexity);
    const short = await troodon(...args, "--windows", "2");
    assertMatch(short.out, /^\d+\.\d+ ± \d+\.\d+ {2}\(\d+ tokens, 2 windows, /);
    const wide = await troodon(...args.slice(0, -1), "100000");
    assertEquals(wide.code, 2);
    assertMatch(wide.err, /--window 100000/);
    assert(!wide.err.includes("--context"), wide.err);
    const low = `${folder}/low.gguf`;
    assertEquals((await troodon("quantize", TINY_LLAMA, low, "--format", "q4_0")).code, 0);
    const both = ["perplexity", TINY_LLAMA, low, ...args.slice(2), "--windows", "2", "--json"];
    const [own, other] = (await troodon(...both)).out.trim().split("\n").map((line) =>
      JSON.parse(line)
    );
    assertEquals(own.rise, 0);
    assertAlmostEquals(other.rise, other.perplexity / own.perplexity - 1, 1e-9);
  });
});
