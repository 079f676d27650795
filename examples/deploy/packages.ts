// Names what serving imports by names that `deno compile` cannot see, so that they are in the executable.

import "hono";
import "hono/cors";
import "prom-client";
