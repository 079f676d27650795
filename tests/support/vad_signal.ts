// The signal that tests/fixtures/golden/silero-vad.json describes by formula: noise, from 0.5 s to 1.5 s
// a voice-like sound of harmonics under three formants, from 2 s to 2.5 s a rising tone.

const RATE = 16000;

/** Strength of the voice-like sound at a frequency. */
function formants(f: number): number {
  return Math.exp(-(((f - 700) / 250) ** 2)) + 0.6 * Math.exp(-(((f - 1200) / 300) ** 2)) +
    0.3 * Math.exp(-(((f - 2600) / 400) ** 2));
}

/** Three seconds at 16 kHz. */
export function vadSignal(): Float32Array {
  let seed = 20240229;
  return Float32Array.from({ length: 3 * RATE }, (_, n) => {
    const t = n / RATE;
    seed = seed * 48271 % 2147483647;
    let sample = 0.01 * (2 * seed / 2147483647 - 1);
    if (t >= 0.5 && t < 1.5) {
      const syllables = 0.5 - 0.5 * Math.cos(2 * Math.PI * 4 * t);
      for (let k = 1; k <= 30; k++) {
        sample += 0.25 * formants(120 * k) * Math.sin(2 * Math.PI * 120 * k * t) * syllables;
      }
    }
    if (t >= 2 && t < 2.5) sample += 0.3 * Math.sin(2 * Math.PI * (200 + 1200 * (t - 2)) * t);
    return sample;
  });
}
