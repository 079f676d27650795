import { assertEquals } from "@std/assert";
import { listen } from "./listen.ts";

Deno.test("a listener closes while a request is open that nobody answers, without an error that nobody can catch", async () => {
  const asked = Promise.withResolvers<void>(), answered = Promise.withResolvers<Response>();
  const listener = await listen(
    Promise.resolve({
      fetch() {
        asked.resolve();
        return answered.promise;
      },
      drain: () => Promise.resolve(),
    }),
    { hostname: "127.0.0.1", port: 0 },
  );
  const { port } = new URL(listener.url);
  const client = await Deno.connect({ port: Number(port) });
  await client.write(new TextEncoder().encode("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  await asked.promise;
  assertEquals(await listener.drain(1000), true);
  await listener.close();
  // Nobody new is let in, and who is in still gets his answer.
  assertEquals(await Deno.connect({ port: Number(port) }).catch(() => "refused"), "refused");
  answered.resolve(new Response("late"));
  const bytes = new Uint8Array(1000);
  const text = new TextDecoder().decode(bytes.subarray(0, await client.read(bytes) ?? 0));
  assertEquals([text.startsWith("HTTP/1.1 200"), text.endsWith("late")], [true, true]);
  client.close();
});
