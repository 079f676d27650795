// The discrete Fourier transform of complex numbers for lengths of small prime factors, such as the 400 of speech
// recognisers: Stockham's form of the mixed-radix algorithm (Cooley and Tukey 1965), which needs no reordering.
// Tables and buffers are made once for a length; numbers are float64.

/** Transforms in place. */
export interface Fft {
  /** Real and imaginary parts of the input, and after `run` of the spectrum. */
  readonly re: Float64Array;
  readonly im: Float64Array;
  /** X[k] = Σ x[n] exp(-2πi nk / length). */
  run(): void;
}

/** Factors that a length is taken apart into, best first. */
const RADICES = [4, 5, 3, 2];

/**
 * Makes a transform.
 *
 * @throws {RangeError} If the length is no whole number above 0.
 */
export function createFft(length: number): Fft {
  if (!Number.isInteger(length) || length < 1) {
    throw new RangeError(`Cannot transform ${length} numbers`);
  }
  const radices = radicesOf(length);
  const cos = new Float64Array(length), sin = new Float64Array(length);
  for (let i = 0; i < length; i++) {
    const angle = -2 * Math.PI * i / length;
    cos[i] = Math.cos(angle);
    sin[i] = Math.sin(angle);
  }
  const re = new Float64Array(length), im = new Float64Array(length);
  const other = { re: new Float64Array(length), im: new Float64Array(length) };
  const most = Math.max(1, ...radices);
  const parts = { re: new Float64Array(most), im: new Float64Array(most) };

  /** A pass: `stride` interleaved transforms of what is left become radix times as many. */
  function pass(
    from: Pick<Fft, "re" | "im">,
    to: Pick<Fft, "re" | "im">,
    { radix, stride }: { readonly radix: number; readonly stride: number },
  ): void {
    const rest = length / (radix * stride);
    for (let p = 0; p < rest; p++) {
      for (let q = 0; q < stride; q++) {
        for (let j = 0; j < radix; j++) {
          const at = q + stride * (p + rest * j);
          parts.re[j] = from.re[at]!;
          parts.im[j] = from.im[at]!;
        }
        for (let k = 0; k < radix; k++) {
          let sumRe = parts.re[0]!, sumIm = parts.im[0]!;
          for (let j = 1; j < radix; j++) {
            const turn = j * k % radix * (length / radix);
            sumRe += parts.re[j]! * cos[turn]! - parts.im[j]! * sin[turn]!;
            sumIm += parts.re[j]! * sin[turn]! + parts.im[j]! * cos[turn]!;
          }
          const twiddle = p * k * stride % length;
          const at = q + stride * (radix * p + k);
          to.re[at] = sumRe * cos[twiddle]! - sumIm * sin[twiddle]!;
          to.im[at] = sumRe * sin[twiddle]! + sumIm * cos[twiddle]!;
        }
      }
    }
  }

  return {
    re,
    im,
    run() {
      let from: Pick<Fft, "re" | "im"> = { re, im }, to: Pick<Fft, "re" | "im"> = other;
      let stride = 1;
      for (const radix of radices) {
        pass(from, to, { radix, stride });
        stride *= radix;
        [from, to] = [to, from];
      }
      if (from.re !== re) {
        re.set(from.re);
        im.set(from.im);
      }
    },
  };
}

function radicesOf(length: number): number[] {
  const radices: number[] = [];
  let rest = length;
  for (const radix of RADICES) {
    for (; rest % radix === 0; rest /= radix) radices.push(radix);
  }
  for (let prime = 7; rest > 1; prime += 2) {
    for (; rest % prime === 0; rest /= prime) radices.push(prime);
  }
  return radices;
}
