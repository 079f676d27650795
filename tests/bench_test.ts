// The micro benches have to load and to register what they measure; running them takes minutes and is
// `deno bench bench/`.

import { assert, assertEquals } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";

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
