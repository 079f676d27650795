// The discrete Fourier transform of complex doubles, in place: Cooley & Tukey 1965 for powers of two,
// the sum of its definition otherwise.

/** Transforms; the inverse divides by the length. */
export function fourier(
  re: Float64Array,
  { im, inverse }: { readonly im: Float64Array; readonly inverse: boolean },
): void {
  const size = re.length;
  if (size < 2) return;
  const sign = inverse ? 1 : -1;
  if ((size & (size - 1)) === 0) radix2(re, im, sign);
  else bySum(re, im, sign);
  if (!inverse) return;
  for (let i = 0; i < size; i++) {
    re[i]! /= size;
    im[i]! /= size;
  }
}

function bySum(re: Float64Array, im: Float64Array, sign: number): void {
  const size = re.length, real = re.slice(), imaginary = im.slice();
  const angles = (k: number) => sign * 2 * Math.PI * k / size;
  const cosines = Float64Array.from({ length: size }, (_, k) => Math.cos(angles(k)));
  const sines = Float64Array.from({ length: size }, (_, k) => Math.sin(angles(k)));
  for (let k = 0; k < size; k++) {
    let sumRe = 0, sumIm = 0;
    for (let n = 0; n < size; n++) {
      const at = k * n % size;
      sumRe += real[n]! * cosines[at]! - imaginary[n]! * sines[at]!;
      sumIm += real[n]! * sines[at]! + imaginary[n]! * cosines[at]!;
    }
    re[k] = sumRe;
    im[k] = sumIm;
  }
}

function radix2(re: Float64Array, im: Float64Array, sign: number): void {
  const size = re.length;
  for (let i = 1, j = 0; i < size; i++) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j]!, re[i]!];
      [im[i], im[j]] = [im[j]!, im[i]!];
    }
  }
  for (let half = 1; half < size; half *= 2) {
    for (let k = 0; k < half; k++) {
      const angle = sign * Math.PI * k / half, cos = Math.cos(angle), sin = Math.sin(angle);
      for (let a = k; a < size; a += 2 * half) {
        const b = a + half;
        const tRe = re[b]! * cos - im[b]! * sin, tIm = re[b]! * sin + im[b]! * cos;
        re[b] = re[a]! - tRe;
        im[b] = im[a]! - tIm;
        re[a]! += tRe;
        im[a]! += tIm;
      }
    }
  }
}
