// The page's files. Paths are looked up in a map, so that none leads out of it.

import type { AppOptions } from "./app_options.ts";
import type { Call } from "./call.ts";
import type { Route } from "./routes.ts";
import { notFound } from "./api_error.ts";

/** Answers `GET` of what no endpoint has. */
export function pageRoute(page: AppOptions["page"]): Route {
  return {
    path: "/*",
    methods: ["GET"],
    isOpen: true,
    act: async (call) => {
      const response = await fileAt(call, page);
      if (response) return response;
      throw notFound();
    },
  };
}

async function fileAt(
  { request }: Call,
  page: AppOptions["page"],
): Promise<Response | undefined> {
  const file = (await page?.())?.get(new URL(request.url).pathname);
  if (!file) return undefined;
  const { type, bytes, etag, headers } = file;
  const tags = request.headers.get("if-none-match") ?? "";
  const isKnown = tags.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
  return new Response(isKnown ? null : bytes, {
    status: isKnown ? 304 : 200,
    headers: { ...headers, etag, ...!isKnown && { "content-type": type } },
  });
}
