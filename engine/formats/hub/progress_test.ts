import { assert, assertEquals } from "@std/assert";
import { createMeter, createProgressRenderer, formatBytes, formatProgress } from "./progress.ts";

const EVENT = {
  phase: "download",
  file: "m.gguf",
  received: 25e6,
  total: 100e6,
  bytesPerSecond: 10e6,
} as const;

Deno.test("formatBytes() gives three digits in decimal units", () => {
  const cases: [number, string][] = [
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.00 kB"],
    [12_345, "12.3 kB"],
    [999_499, "999 kB"],
    [999_500, "1.00 MB"],
    [98_362_432, "98.4 MB"],
    [253_113_024, "253 MB"],
    [7e12, "7.00 TB"],
    [9_999_999, "10.0 MB"],
    [99_970_000, "100 MB"],
  ];
  for (const [bytes, text] of cases) assertEquals(formatBytes(bytes), text);
});

Deno.test("formatProgress() says what, how much, how fast and how long, and fits the line", () => {
  assertEquals(
    formatProgress(EVENT),
    "downloading m.gguf   25 %  25.0 MB of 100 MB  10.0 MB/s  8 s left",
  );
  const line = formatProgress(EVENT, 100);
  assert(line.includes("█") && line.length < 100, line);
  for (const columns of [10, 30, 50, 80, 200]) {
    assert(formatProgress({ ...EVENT, file: "x".repeat(60) }, columns).length < columns);
  }
  assertEquals(
    formatProgress({ ...EVENT, total: undefined, bytesPerSecond: 0 }),
    "downloading m.gguf  25.0 MB",
  );
});

Deno.test("the meter gives the speed of the last seconds", () => {
  let time = 0;
  const meter = createMeter(() => time);
  assertEquals(meter(500), 0);
  for (time = 100; time <= 10_000; time += 100) meter(500 + time * 2);
  time = 10_100;
  const fast = meter(500 + 10_000 * 2 + 100_000);
  assert(fast > 30_000 && fast < 40_000, `${fast}`);
});

function record(isTerminal: boolean) {
  let time = 0;
  let text = "";
  const renderer = createProgressRenderer({
    write: (part) => {
      text += part;
    },
    isTerminal,
    columns: 90,
    now: () => time,
  });
  for (const received of [0, 10e6, 20e6, 100e6, 100e6]) {
    renderer.show({ ...EVENT, received });
    time += 60;
  }
  renderer.show({ ...EVENT, phase: "unpack", received: 1 });
  renderer.end();
  renderer.end();
  return text;
}

Deno.test("on a terminal one line is drawn over, with a new one for each step", () => {
  const text = record(true);
  assertEquals(text.split("\n").length, 3);
  assertEquals(text.split("\r\x1b[K").length - 1, 4); // 0, 20 MB, 100 MB, unpack
});

Deno.test("elsewhere there are few plain lines: begin, end, next step", () => {
  const text = record(false);
  assert(!text.includes("\x1b") && !text.includes("\r"));
  assertEquals(text.split("\n").filter(Boolean).length, 3);
});
