// `deno task fixtures` from a script's side: what it takes for a folder, what it skips, fails, and counts.

import { assertEquals, assertMatch } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { fixturePath } from "./support/fixtures.ts";

async function fixtures(...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", `${ROOT}/tools/fixtures.ts`, ...args],
    env: { CI: "" },
  }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, lines: out!.trimEnd().split("\n"), err: err! };
}

Deno.test("a kind's folder, and a folder of kinds, are run and counted in the last line", async () => {
  const kind = await fixtures("--path", fixturePath("models"), "llama_formats/gguf");
  assertEquals([kind.code, kind.lines.at(-1)], [0, "2 passed, 0 failed, 0 skipped"]);
  const all = await fixtures("--path", fixturePath("."), "--json", "public/pc-samp-02");
  assertEquals([all.code, all.lines.at(-1)], [0, "9 passed, 0 failed, 1 skipped"]);
  const { name, outcome } = JSON.parse(all.lines[0]!);
  assertEquals([name, outcome], ["public/pc-samp-02/repeat_penalty_signs", "passed"]);
});

Deno.test("what is not built is skipped by name, and nothing at all is an error", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const nothing = await fixtures("--path", folder);
    assertEquals(nothing.code, 1);
    assertMatch(nothing.err, /no fixtures in .*Kinds: gguf, public, models, golden/);
    for (const path of ["golden", "public/pc-new-01", "models/odd"]) {
      await Deno.mkdir(`${folder}/${path}`, { recursive: true });
    }
    await Deno.writeTextFile(`${folder}/golden/new-kind.json`, "{}");
    await Deno.writeTextFile(`${folder}/public/pc-new-01/expected.json`, '{"cases":[]}');
    const odd = await fixtures("--path", folder);
    assertEquals([odd.code, odd.lines.at(-1)], [0, "0 passed, 0 failed, 3 skipped"]);
    for (const name of ["golden/new-kind.json", "public/pc-new-01", "models/odd"]) {
      assertMatch(odd.lines.join("\n"), new RegExp(`^skipped ${name}: `, "m"));
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a kind is told by what lies in it, below folders of any name, and one case by itself", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const copies = [
      ["models/llama", ["config.json", "expected.json", "model.safetensors"], "new/some/tiny"],
      ["public/pc-tmpl-02", ["expected.json"], "reports/of-today"],
    ] as const;
    for (const [from, files, to] of copies) {
      await Deno.mkdir(`${folder}/${to}`, { recursive: true });
      for (const file of files) {
        await Deno.copyFile(fixturePath(`${from}/${file}`), `${folder}/${to}/${file}`);
      }
    }
    await Deno.mkdir(`${folder}/new/odd`);
    const all = await fixtures("--path", folder);
    assertEquals([all.code, all.lines.at(-1)], [0, "7 passed, 0 failed, 0 skipped"]);
    assertMatch(all.lines.join("\n"), /^passed models\/tiny\/1$/m);
    assertMatch(all.lines.join("\n"), /^passed public\/of-today\//m);
    const one = await fixtures("--path", `${folder}/reports/of-today/`);
    assertEquals(one.lines.at(-1), "5 passed, 0 failed, 0 skipped");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a precision that a model has not is skipped with the reason", async () => {
  const path = ["--path", fixturePath("models/llama")];
  const fast = await fixtures(...path, "--precision", "fast");
  assertEquals(fast.lines.at(-1), "2 passed, 0 failed, 0 skipped");
  const strict = await fixtures(...path, "--precision", "strict");
  assertEquals([strict.code, strict.lines.at(-1)], [0, "0 passed, 0 failed, 2 skipped"]);
  assertMatch(
    strict.lines[0]!,
    /^skipped models\/llama\/0(?: \(.* s\))?: .*the model has no matrix in LF8/,
  );
  const odd = await fixtures(...path, "--gpu", "dawn", "--device", "wasm");
  assertEquals([odd.code, odd.err], [2, "error: --gpu dawn does not go with --device wasm\n"]);
});

Deno.test("a wrong answer fails by name, with what was wanted", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/public/pc-samp-02`, { recursive: true });
    const path = "public/pc-samp-02/expected.json";
    const text = await Deno.readTextFile(fixturePath(path));
    await Deno.writeTextFile(`${folder}/${path}`, text.replace("1.6666667", "1.6666"));
    const { code, lines } = await fixtures("--path", folder, "--quiet");
    assertEquals([code, lines.at(-1)], [1, "8 passed, 1 failed, 1 skipped"]);
    assertMatch(lines[0]!, /^failed public\/pc-samp-02\/repeat_penalty_signs: .*1\.6666,/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
