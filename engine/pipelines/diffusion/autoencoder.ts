// Between pictures and latents: the autoencoder of a pipeline, and the numbers that networks see for pixels (0 to 255 are
// -1 to 1, planes of channels).

import { ResourceError } from "../../errors.ts";
import type { Picture } from "../../formats/media/picture.ts";
import { firstOf, type Network, type Tensor } from "../../models/networks/network.ts";
import type { JsonRecord } from "./diffusers_folder.ts";
import { needsTiles, runTiled, type Tiling } from "./tiles.ts";

/** An autoencoder. */
export interface Autoencoder {
  readonly channels: number;
  /** Pixels a latent has each way. */
  readonly factor: number;
  /** The picture of latents. */
  decode(latents: Tensor, options?: DecodeOptions): Promise<Picture>;
  /**
   * Latents of a picture.
   *
   * @param planes As `planesOf` makes them, [1, 3, height, width].
   * @param draw Noise of deviation 1, so much: latents are drawn from what the network gives a distribution of.
   */
  encode(
    planes: Tensor,
    draw: (length: number) => Float32Array,
    options?: Pick<DecodeOptions, "tiles" | "signal">,
  ): Promise<Tensor>;
}

/** How latents are decoded. */
export interface DecodeOptions {
  /** Whether large pictures are decoded in tiles; default: where one run takes too much memory. */
  readonly tiles?: boolean | undefined;
  /** Told that memory was short. */
  readonly onTiles?: (() => void) | undefined;
  readonly signal?: AbortSignal | undefined;
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
  const factor = 2 ** (levels - 1), tile = Number(config.sample_size ?? TILE);
  const ranges = rangesOf(config, channels);
  /** In one run, or where that takes too much memory in tiles. */
  const inTiles = async (
    whole: Tensor,
    { tiles, onTiles, ...tiling }: Tiling & Pick<DecodeOptions, "tiles" | "onTiles">,
  ): Promise<Tensor> => {
    const isLarge = needsTiles(whole, tiling.size);
    if (isLarge && tiles) return await runTiled(whole, tiling);
    try {
      return await tiling.run(whole);
    } catch (error) {
      if (!(error instanceof ResourceError) || !isLarge || tiles === false) throw error;
      await Promise.all([decoder.release(), encoder.release()]);
      onTiles?.();
      return await runTiled(whole, tiling);
    }
  };
  return {
    channels,
    factor,
    async decode({ data, dims }, { signal, ...options } = {}) {
      const places = dims[2]! * dims[3]!;
      const latents = data.map((value, i) => {
        const { scale, shift } = ranges[Math.floor(i / places)]!;
        return value / scale + shift;
      });
      const decoded = await inTiles({ data: latents, dims }, {
        ...{ ...options, size: Math.trunc(tile / factor), made: tile },
        async run({ data, dims }) {
          const results = await decoder.run({ latent_sample: { data, dims } }, signal);
          return { data: firstOf(results), dims: [1, 3, dims[2]! * factor, dims[3]! * factor] };
        },
      });
      return pictureOf(decoded.data, { height: dims[2]! * factor, width: dims[3]! * factor });
    },
    async encode(sample, draw, { signal, ...options } = {}) {
      const { data: given, dims: made } = await inTiles(sample, {
        ...{ ...options, size: tile, made: Math.trunc(tile / factor) },
        async run({ data, dims }) {
          const values = firstOf(await encoder.run({ sample: { data, dims } }, signal));
          const places = dims[2]! * dims[3]! / factor ** 2;
          return {
            data: values,
            dims: [1, values.length / places, dims[2]! / factor, dims[3]! / factor],
          };
        },
      });
      const dims = [1, channels, made[2]!, made[3]!], places = made[2]! * made[3]!;
      const count = channels * places;
      // An exporter may have drawn them already.
      const noise = given.length === 2 * count ? draw(count) : undefined;
      const data = Float32Array.from({ length: count }, (_, i) => {
        const { scale, shift } = ranges[Math.floor(i / places)]!;
        const log = Math.min(LOG_BOUNDS[1], Math.max(LOG_BOUNDS[0], given[count + i] ?? 0));
        const drawn = noise ? given[i]! + Math.exp(log / 2) * noise[i]! : given[i]!;
        return (drawn - shift) * scale;
      });
      return { data, dims };
    },
  };
}

/** Edge of a tile where the config says no size, as in the files of Stable Diffusion 1. */
const TILE = 512;

/** What latents are divided by, and what is added, by channel. */
function rangesOf(config: JsonRecord, channels: number) {
  const scale = Number(config.scaling_factor ?? 0.18215), shift = Number(config.shift_factor ?? 0);
  const { latents_mean: means, latents_std: deviations } = config;
  return Array.from({ length: channels }, (_, i) => {
    if (!Array.isArray(means) || !Array.isArray(deviations)) return { scale, shift };
    return { scale: scale / Number(deviations[i]), shift: Number(means[i]) };
  });
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
