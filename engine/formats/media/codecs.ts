// The decoders of JPEG (mozjpeg) and WebP (libwebp), built for WebAssembly by jSquash: no native code, and of all that npm
// has for this the ones whose pixels are PIL's. Deno fetches a package (300 KB, 700 KB) when the first such picture is
// read, keeps it, and reads it from its cache after that, also without a network. No permission is needed.
//
// Each picture gets an instance of its own: what a hostile file does to its memory ends with it, and so does that memory.
// Decoding is one call on this thread; a picture of 12 megapixels takes some tenths of a second.

import { SourceError } from "../../errors.ts";
import { importNpm, importNpmWasm, type NpmPackage } from "../../npm_packages.ts";
import type { RgbaPicture } from "./picture.ts";

/** What became of a file. */
interface Decoded {
  /** Absent where it could not be decoded. */
  readonly picture?: RgbaPicture;
  /** What the library wrote, errors and warnings. */
  readonly complaint: string;
}

interface Codec {
  decode(bytes: Uint8Array, ...flags: readonly boolean[]): {
    readonly width: number;
    readonly height: number;
    readonly data: Uint8ClampedArray;
  } | null;
}

/** What Emscripten's modules export. */
type CodecFactory = (options: {
  readonly noInitialRun: true;
  readonly print: (line: string) => void;
  readonly printErr: (line: string) => void;
  readonly instantiateWasm: (
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance) => void,
  ) => WebAssembly.Exports;
}) => Promise<Codec>;

/** Decodes a JPEG file, its pixels as they are stored: not turned as EXIF says. */
export function libjpeg(bytes: Uint8Array): Promise<Decoded> {
  return decode(bytes, { name: "@jsquash/jpeg", path: "/codec/dec/mozjpeg_dec", flags: [false] });
}

/** Decodes a WebP file. */
export function libwebp(bytes: Uint8Array): Promise<Decoded> {
  return decode(bytes, { name: "@jsquash/webp", path: "/codec/dec/webp_dec", flags: [] });
}

async function decode(
  bytes: Uint8Array,
  { name, path, flags }: {
    readonly name: NpmPackage;
    readonly path: string;
    readonly flags: readonly boolean[];
  },
): Promise<Decoded> {
  const [{ default: factory }, code] = await load(name, path);
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  try {
    const codec = await withoutTrace(() =>
      factory({
        noInitialRun: true,
        print: write,
        printErr: write,
        instantiateWasm(imports, done) {
          const instance = new WebAssembly.Instance(code, imports);
          done(instance);
          return instance.exports;
        },
      })
    );
    const found = codec.decode(bytes, ...flags);
    const complaint = lines.join(", ");
    if (!found) return { complaint };
    const { width, height, data: { buffer, byteOffset, byteLength } } = found;
    const data = new Uint8Array(buffer, byteOffset, byteLength);
    return { picture: { width, height, channels: 4, data }, complaint };
  } catch (error) {
    // libjpeg's way out of an error ends the program; what it was stands in the lines.
    return { complaint: lines.join(", ") || (error as Error).message };
  }
}

async function load(
  name: NpmPackage,
  path: string,
): Promise<readonly [{ readonly default: CodecFactory }, WebAssembly.Module]> {
  try {
    return await Promise.all([
      importNpm<{ readonly default: CodecFactory }>(name, `${path}.js`),
      importNpmWasm(name, `${path}.wasm`),
    ]);
  } catch (cause) {
    throw new SourceError(`the decoder of these pictures could not be loaded: ${cause}`, {
      file: name,
      remedy: "Read one such picture where there is a network, or save this one as PNG",
      cause,
    });
  }
}

/** These modules set `location` where there is none. */
function withoutTrace<T>(start: () => T): T {
  const before = Object.getOwnPropertyDescriptor(globalThis, "location");
  try {
    return start();
  } finally {
    if (before) Object.defineProperty(globalThis, "location", before);
  }
}
