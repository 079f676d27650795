import { assert, assertEquals } from "@std/assert";
import { adapterNeed } from "../../../tests/support/gpu.ts";
import { testWith } from "../../../tests/support/skip.ts";
import { writeCardReport } from "./card_report.ts";

const HEALTH = { passed: 2, failed: 0, skipped: 1, reason: undefined };

testWith(
  [adapterNeed],
  "a report says of a card what it is, and of each kernel how it does",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".json" });
    const said: string[] = [];
    await writeCardReport(file, {
      report: { simd: { simd: "relaxed" }, adapter: { description: "a card" } },
      kernels: [
        { ...HEALTH, kernel: "gpu_select_rows_f32", op: "select_rows" },
        {
          ...HEALTH,
          kernel: "gpu_rms_norm_f32",
          op: "rms_norm",
          failed: 1,
          reason: "a case: y[0] is 1",
        },
        { ...HEALTH, kernel: "gpu_rope_f32", op: "rope", passed: 0 },
        { ...HEALTH, kernel: "gpu_softmax_f32", op: "softmax", passed: 0, skipped: 0 },
      ],
      checks: [{ device: "gpu", done: 0.5, seconds: 45, left: 0 }],
      ...{ provider: undefined, from: undefined },
      seconds: 12,
      say: (text) => void said.push(text),
    });
    const report = JSON.parse(await Deno.readTextFile(file));
    assertEquals([report.gpu.provider, report.gpu.adapter.description], ["built-in", "a card"]);
    assert(report.gpu.limits.maxBufferSize >= 1 << 28);
    assertEquals(report.gpu.capabilities.maxBufferBytes, report.gpu.limits.maxBufferSize);
    assertEquals(report.checks, [{ device: "gpu", done: 0.5, seconds: 45, left: 0 }]);
    const [select, norm, rope, softmax] = report.kernels;
    assertEquals([select.verdict, norm.verdict, rope.verdict], ["ok", "failed", "not here"]);
    assertEquals(softmax.verdict, "not reached");
    // What is wrong is not timed.
    assertEquals([norm.microseconds, rope.microseconds], [undefined, undefined]);
    if (report.gpu.capabilities.timestamp) {
      assert(select.microseconds > 0 && select.timedOn.length > 0);
    } else assert(said.some((text) => text.includes("no timestamps")));
    assert(said.at(-1)!.startsWith(`${file}: 4 kernels, `));
    await Deno.remove(file);
  },
);

testWith(
  [adapterNeed],
  "a report is written where a driver does not come back from a kernel",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".json" });
    const said: string[] = [], time = new AbortController();
    const speed = { kernel: "gpu_rope_f32", case: "a case", microseconds: 3 };
    const told = [{ begins: "gpu_rope_f32" }, { speed }, { begins: "gpu_softmax_f32" }];
    const code = `for (const one of ${JSON.stringify(told)}) console.log(JSON.stringify(one));
    while (true);`;
    await writeCardReport(file, {
      report: { simd: undefined, adapter: {} },
      kernels: ["gpu_rope_f32", "gpu_softmax_f32"].map((kernel) => ({ ...HEALTH, kernel, op: "" })),
      checks: [{ device: "gpu", done: 1, seconds: 1, left: 0 }],
      ...{ provider: undefined, from: undefined, seconds: 3600, timer: () => time.signal },
      everyMs: 10,
      say(text) {
        said.push(text);
        if (text === "1 of 2 timed, now gpu_softmax_f32") time.abort();
      },
      url: new URL(`data:text/javascript,${encodeURIComponent(code)}`),
    });
    const { kernels, gpu } = JSON.parse(await Deno.readTextFile(file));
    if (gpu.capabilities.timestamp) {
      assertEquals(kernels.map(({ microseconds }: { microseconds?: number }) => microseconds), [
        3,
        undefined,
      ]);
      assert(said.includes("The time was over at gpu_softmax_f32."), said.join());
    }
    await Deno.remove(file);
  },
);
