// What examples/edge is made of: encoders and files in memory, without what goes on writing texts.

export { load } from "../../models/load.ts";
export type { Model } from "../../decode/model.ts";
export { embed } from "../../pipelines/embed.ts";
export { fileOfBytes, mount } from "./files.ts";
