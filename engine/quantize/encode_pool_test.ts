import { assert, assertEquals, assertRejects } from "@std/assert";
import { factorGram } from "../../quant/gptq.ts";
import { encodedNames, findFormat, formatBytes, getFormat } from "../../quant/mod.ts";
import { completed } from "../../tests/support/completed.ts";
import { createCaseRandom } from "../ops/case_random.ts";
import { createEncodePool } from "./encode_pool.ts";
import { type EncodeJob, encodeRun } from "./encode_run.ts";

const COLUMNS = 512;
const ROWS = 4;

/** A job that GPTQ rounds. */
function guidedJob(): EncodeJob {
  const random = createCaseRandom(5);
  const inputs = random.normal(COLUMNS * 64);
  const gram = new Float32Array(COLUMNS ** 2);
  for (let i = 0; i < gram.length; i++) {
    const [a, b] = [Math.floor(i / COLUMNS), i % COLUMNS];
    for (let t = 0; t < 64; t++) gram[i]! += inputs[t * COLUMNS + a]! * inputs[t * COLUMNS + b]!;
  }
  const factor = completed(factorGram(gram, { columns: COLUMNS, group: 256 }));
  return { format: "Q4_K", options: {}, factor };
}

Deno.test("threads give the bytes of one, for every format and for calibrated rounding", async () => {
  const random = createCaseRandom(7);
  const values = random.normal(ROWS * COLUMNS, 0.25);
  const importance = random.normal(COLUMNS).map(Math.abs);
  const jobs: EncodeJob[] = encodedNames().map((name) => ({
    format: findFormat(name, COLUMNS).name,
    options: { levels: "upstream", importance, range: [-2, 2] },
  }));
  jobs.push(guidedJob());
  using pool = createEncodePool(3, -1);
  pool.prepare(100);
  // The first run of a format is encoded here, and tells that others are worth a thread.
  for (const job of jobs) await pool.encode(job, values.slice());
  await pool.encode(jobs[0]!, values.slice());
  assertEquals(pool.depth, 6);
  const results = await Promise.all(jobs.map((job) => pool.encode(job, values.slice())));
  for (const [i, job] of jobs.entries()) {
    const { bytes, decoded } = encodeRun(job, values);
    assertEquals(results[i]!.bytes, bytes, job.format);
    assertEquals(results[i]!.decoded, decoded, job.format);
    assertEquals(results[i]!.values, values);
  }
});

Deno.test("a run that a format cannot hold is refused by a thread as by the caller, and the next is not", async () => {
  const job: EncodeJob = { format: "Q4_B16", options: {} };
  const large = new Float32Array(32).fill(3e38);
  using threads = createEncodePool(2, -1);
  threads.prepare(100);
  await threads.encode(job, new Float32Array(32));
  using alone = createEncodePool(1);
  const messages = [];
  for (const pool of [threads, alone]) {
    const error = await assertRejects(() => pool.encode(job, large.slice()), RangeError);
    messages.push(error.message);
    const { bytes } = await pool.encode(job, new Float32Array(32));
    assertEquals(bytes.length, formatBytes(getFormat("Q4_B16"), 32));
  }
  assertEquals(messages[0], messages[1]);
});

Deno.test("few runs, a fast format, or a limit of one thread start none", async () => {
  const job: EncodeJob = { format: "Q8_0", options: {} };
  const pools = [[createEncodePool(4, -1), 2], [createEncodePool(4, 1e6), 100], [
    createEncodePool(1, -1),
    100,
  ]] as const;
  for (const [pool, runs] of pools) {
    using _pool = pool;
    pool.prepare(runs);
    for (let i = 0; i < 3; i++) await pool.encode(job, new Float32Array(32));
    assertEquals(pool.depth, 1);
  }
});

Deno.test({
  name: "without permission to read the worker's module the caller does it all",
  permissions: { read: false },
  fn: async () => {
    using pool = createEncodePool(2, -1);
    pool.prepare(100);
    const job: EncodeJob = { format: "Q8_0", options: {} };
    for (let i = 0; i < 2; i++) {
      const { bytes } = await pool.encode(job, new Float32Array(32).fill(1));
      assert(bytes.some((byte) => byte !== 0));
    }
    assertEquals(pool.depth, 1);
  },
});
