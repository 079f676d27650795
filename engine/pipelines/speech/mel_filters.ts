// The triangular filters that sum a power spectrum into bands on Slaney's mel scale (Auditory Toolbox, 1998), which is
// linear below 1 kHz and logarithmic above, each of unit area: librosa's and transformers' `mel_filter_bank` with
// norm "slaney". A filter is kept where it is above 0 only.

/** One band: weights of the bins from `first` on. */
export interface MelFilter {
  /** The first bin that counts. */
  readonly first: number;
  readonly weights: Float64Array;
}

/** Sizes of a spectrum and its bands. */
export interface MelScale {
  /** How many bands. */
  readonly mels: number;
  /** Bins of the spectrum, from 0 to half the rate. */
  readonly bins: number;
  /** Samples a second. */
  readonly rate: number;
}

const LINEAR = 200 / 3, KNEE = 1000, STEP = Math.log(6.4) / 27;

function melOf(hertz: number): number {
  return hertz < KNEE ? hertz / LINEAR : KNEE / LINEAR + Math.log(hertz / KNEE) / STEP;
}

function hertzOf(mel: number): number {
  const knee = KNEE / LINEAR;
  return mel < knee ? mel * LINEAR : KNEE * Math.exp(STEP * (mel - knee));
}

/** The filters, lowest band first. */
export function melFilters({ mels, bins, rate }: MelScale): MelFilter[] {
  const top = melOf(rate / 2);
  const edges = Array.from({ length: mels + 2 }, (_, i) => hertzOf(top * i / (mels + 1)));
  const hertz = (bin: number) => bin * (rate / 2) / (bins - 1);
  return Array.from({ length: mels }, (_, mel) => {
    const [low, centre, high] = edges.slice(mel) as [number, number, number];
    const weightAt = (bin: number) =>
      Math.min((hertz(bin) - low) / (centre - low), (high - hertz(bin)) / (high - centre)) *
      2 / (high - low);
    let first = 0;
    while (first < bins && weightAt(first) <= 0) first++;
    let end = first;
    while (end < bins && weightAt(end) > 0) end++;
    return {
      first,
      weights: Float64Array.from({ length: end - first }, (_, i) => weightAt(first + i)),
    };
  });
}
