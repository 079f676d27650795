// What an interrupt of a task leaves: no process that it started, no file that it noted.

import { assert, assertEquals } from "@std/assert";
import { startChild, succeeds } from "./children.ts";
import { ROOT } from "./task.ts";

/** A task that has a busy child, without which it fails, one that does not heed SIGTERM, and a file. */
const TASK = `
import { deleteAtInterrupt, startChild } from ${
  JSON.stringify(`${ROOT}/tools/support/children.ts`)
};
import { runTask } from ${JSON.stringify(`${ROOT}/tools/support/task.ts`)};
const path = Deno.makeTempFileSync();
deleteAtInterrupt(path);
const deaf = "Deno.addSignalListener('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)";
const options = { stdin: "null", stdout: "null", stderr: "null" };
const busy = startChild(Deno.execPath(), { args: ["eval", "for (;;);"], ...options });
const child = startChild(Deno.execPath(), { args: ["eval", deaf], ...options, stdout: "piped" });
await child.stdout.getReader().read();
const lost = () => Promise.reject(new Error("a child is lost"));
busy.status.then(() => runTask({ name: "x", summary: "x", flags: {} }, lost));
console.log(JSON.stringify({ path, pids: [busy.pid, child.pid] }));
setInterval(() => {}, 1000);
`;

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

Deno.test({
  name:
    "an interrupt ends a task's processes, also those that do not heed it, and deletes its files",
  ignore: Deno.build.os !== "linux", // processes are looked for in /proc
  async fn() {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const task = startChild(Deno.execPath(), {
        args: ["eval", TASK],
        ...{ stdin: "null", stdout: "piped", stderr: "inherit" },
      });
      const reader = task.stdout.getReader();
      const { path, pids } = JSON.parse(new TextDecoder().decode((await reader.read()).value));
      assert(await isThere(path));
      for (const pid of pids) assert(await isThere(`/proc/${pid}`));
      task.kill(signal);
      assertEquals((await task.status).code, 130);
      await reader.cancel();
      for (const pid of pids) assertEquals(await isThere(`/proc/${pid}`), false, `${pid}`);
      assertEquals(await isThere(path), false);
    }
  },
});

Deno.test("a program that is not there does not succeed", async () => {
  assertEquals(await succeeds("no-such-program-here", []), false);
  assertEquals(await succeeds(Deno.execPath(), ["--version"]), true);
});
