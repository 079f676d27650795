// Between pictures and latents: the autoencoder of a pipeline, and the numbers that networks see for pixels (0 to 255 are
// -1 to 1, planes of channels).

import type { Picture } from "../../formats/media/picture.ts";
import type { Network, Tensor } from "../../models/networks/network.ts";
import type { JsonRecord } from "./diffusers_folder.ts";

/** An autoencoder. */
export interface Autoencoder {
  readonly channels: number;
  /** Pixels a latent has each way. */
  readonly factor: number;
  /** The picture of latents. */
  decode(latents: Tensor, signal?: AbortSignal): Promise<Picture>;
  /**
   * Latents of a picture.
   *
   * @param planes As `planesOf` makes them, [1, 3, height, width].
   * @param draw Noise of deviation 1, so much: latents are drawn from what the network gives a distribution of.
   */
  encode(planes: Tensor, draw: (length: number) => Float32Array): Promise<Tensor>;
  /** Forgets what was made ready for the last size. */
  release(): void;
}

/** Bounds of the logarithm of variances, as in diffusers. */
const LOG_BOUNDS = [-30, 20] as const;

/** An autoencoder of two networks, or of one where nothing is encoded. */
export function createAutoencoder(
  config: JsonRecord,
  { decoder, encoder }: { readonly decoder: Network; readonly encoder: Network },
): Autoencoder {
  const channels = Number(config.latent_channels ?? 4);
  const levels = Array.isArray(config.block_out_channels) ? config.block_out_channels.length : 4;
  const scale = Number(config.scaling_factor ?? 0.18215), shift = Number(config.shift_factor ?? 0);
  const factor = 2 ** (levels - 1);
  return {
    channels,
    factor,
    async decode({ data, dims }, signal) {
      const latents = data.map((value) => value / scale + shift);
      const values = await decoder.run({ latent_sample: { data: latents, dims } }, signal);
      return pictureOf(values, { height: dims[2]! * factor, width: dims[3]! * factor });
    },
    async encode(sample, draw) {
      const given = await encoder.run({ sample });
      const dims = [1, channels, sample.dims[2]! / factor, sample.dims[3]! / factor];
      const count = channels * dims[2]! * dims[3]!;
      // An exporter may have drawn them already.
      const noise = given.length === 2 * count ? draw(count) : undefined;
      const data = Float32Array.from({ length: count }, (_, i) => {
        const log = Math.min(LOG_BOUNDS[1], Math.max(LOG_BOUNDS[0], given[count + i] ?? 0));
        const drawn = noise ? given[i]! + Math.exp(log / 2) * noise[i]! : given[i]!;
        return (drawn - shift) * scale;
      });
      return { data, dims };
    },
    release() {
      decoder.release();
      encoder.release();
    },
  };
}

/** Pixels as planes from -1 to 1, [1, 3, height, width]. */
export function planesOf({ width, height, channels = 3, data: bytes }: Picture): Tensor {
  const pixels = width * height;
  const data = Float32Array.from({ length: 3 * pixels }, (_, i) => {
    const value = bytes[(i % pixels) * channels + Math.floor(i / pixels)]!;
    return 2 * (value / 255) - 1;
  });
  return { data, dims: [1, 3, height, width] };
}

function pictureOf(
  values: Float32Array,
  { width, height }: { readonly width: number; readonly height: number },
): Picture {
  const pixels = width * height, data = new Uint8Array(3 * pixels);
  for (let i = 0; i < data.length; i++) {
    const value = values[(i % 3) * pixels + Math.floor(i / 3)]!;
    data[i] = Math.round(Math.min(1, Math.max(0, value / 2 + 0.5)) * 255);
  }
  return { width, height, data };
}
