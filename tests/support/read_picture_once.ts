// Reads the picture that comes through standard input, for who starts this without permissions.

import { readPicture } from "../../mod.ts";

const bytes = await new Response(Deno.stdin.readable).bytes();
const { width, height } = await readPicture(bytes);
console.log(`${width} × ${height}`);
