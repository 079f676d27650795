// Q8_LOG of Inferflow: a byte a value and no scale at all. The magnitude of a code is, in thousandths,
// linear up to 1 (code 10) and a power of 1.1 above, which reaches 69.7 at code 127.
// The upstream program writes small values ten times as large as it reads them; here both ends agree.

import { roundHalfAway } from "../extremes.ts";
import { checkFinite } from "../finite.ts";
import type { NumberFormat } from "../format.ts";

const LOG_BASE = Math.log(1.1);
const magnitudes = Float32Array.from(
  { length: 129 },
  (_, code) => (code <= 10 ? code / 10 : 1.1 ** (code - 10)) / 1000,
);

/** 8-bit logarithmic. */
export const q8_log: NumberFormat = {
  name: "Q8_LOG",
  blockSize: 1,
  blockBytes: 1,
  bounds: { largest: 69, relative: 0.05 },
  decode(bytes, out) {
    for (let i = 0; i < out.length; i++) {
      const code = (bytes[i]! << 24) >> 24;
      out[i] = code < 0 ? -magnitudes[-code]! : magnitudes[code]!;
    }
  },
  encode(values, out) {
    checkFinite("Q8_LOG", values);
    for (let i = 0; i < values.length; i++) {
      const thousandths = Math.abs(values[i]!) * 1000;
      const code = roundHalfAway(
        thousandths <= 1 ? thousandths * 10 : 10 + Math.log(thousandths) / LOG_BASE,
      );
      if (code > 127) {
        throw new RangeError(
          `Cannot store value ${i} as Q8_LOG: ${values[i]} is beyond ${magnitudes[127]}`,
        );
      }
      out[i] = values[i]! < 0 ? -code : code;
    }
  },
};
