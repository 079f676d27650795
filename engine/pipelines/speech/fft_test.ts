import { assert, assertThrows } from "@std/assert";
import { createFft } from "./fft.ts";

Deno.test("a spectrum is the definition's sum, for lengths of any factors", () => {
  for (const length of [1, 2, 7, 12, 45, 77, 400]) {
    const fft = createFft(length);
    const x = Array.from({ length }, (_, n) => [Math.sin(n * n), Math.cos(3 * n)] as const);
    x.forEach(([re, im], n) => {
      fft.re[n] = re;
      fft.im[n] = im;
    });
    fft.run();
    for (let k = 0; k < length; k++) {
      let re = 0, im = 0;
      for (const [n, [a, b]] of x.entries()) {
        const angle = -2 * Math.PI * (n * k % length) / length;
        re += a * Math.cos(angle) - b * Math.sin(angle);
        im += a * Math.sin(angle) + b * Math.cos(angle);
      }
      const error = Math.hypot(fft.re[k]! - re, fft.im[k]! - im);
      assert(error < 1e-11 * length, `${length}: ${k} is off by ${error}`);
    }
  }
});

Deno.test("nothing has no spectrum", () => {
  assertThrows(() => createFft(0), RangeError, "0 numbers");
});
